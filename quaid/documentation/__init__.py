"""Projects and their documents, wired: registry, history, index and models put together for the doors."""
