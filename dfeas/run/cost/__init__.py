"""What a run will take, before it begins: memory of each process, bytes, passes and time."""
