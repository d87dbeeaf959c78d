"""The janitor: tidies the memory at night, every decision a commit that can be read, refused and reverted."""
