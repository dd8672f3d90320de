"""The control socket: orders in, snapshots out, for other processes."""
