"""What people see of a run while it goes on: on a terminal, in a notebook, in a log, and at a cluster."""
