"""The MCP server: tools, resources and prompts over stdio and HTTP.

May import Memory, report and every room below them.
Begin with server.py.
"""
