"""Preloaded by the workers of a local cluster: who stops the driver may signal them, too, but the driver ends the run."""

import signal

for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
