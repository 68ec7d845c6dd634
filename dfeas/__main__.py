"""``dfeas`` and ``python -m dfeas``: before anything else is imported it is settled what a signal does meanwhile."""

import gc

from dfeas.engine.signals import at_once_from_now, mark_ended


def main() -> None:
    """Entry point of the ``dfeas`` command."""
    at_once_from_now()
    gc.disable()  # all that is imported stays: to look through it for garbage takes 0.02 s
    from dfeas.cli.main import main as command
    from dfeas.machine import free_at_once

    free_at_once()
    gc.freeze()
    gc.enable()
    try:
        command()
    except SystemExit as ending:
        mark_ended(ending.code if isinstance(ending.code, int) else int(ending.code is not None))
        raise


if __name__ == "__main__":
    main()
