"""The error verdict (DESIGN §8): what failed, whether it is over, and on what evidence."""
