"""The local page of `quaid view`: what the memory holds, where it comes from and what became of it.

May import Memory, report, purge and every room below them.
Begin with routes.py, the table of all pages and actions.
"""

# How to add a page:
# 1. pages/NAME.py: a function `show_NAME(memory, request)` that returns what its template needs, as a dict. It runs in
#    the thread that owns the memory; a QuaidError that it raises becomes a page with its sentence.
# 2. templates/NAME.html: `{% extends "base.html" %}` and the blocks `title` and `main`. parts.html has the macros for
#    cards, bars, diffs, dates and empty states. No inline scripts or styles: the browser refuses them.
# 3. routes.py: a `Page`. One with a `title` stands in the navigation, in the order of the table.
# 4. What changes something is an `Action` there: a function `do(memory, form, request)` that returns where to go next,
#    or a `Shown` page where it cannot be done as it is. Its form has `{{ form_token() }}` in it and posts; guard.py has
#    checked all else before the function is called.
# 5. What a script fetches, or the reader saves, is a `File` there.
# 6. A part of the page with an id and `data-live` is asked for again when the memory changes. A script of a page is
#    static/NAME.js in the block `scripts`, its looks static/NAME.css in the block `head`; without them the page still
#    says something sensible.
# 7. tests/web/test_NAME.py: the fixture `client` asks real pages over a real vault; browsing.py opens them
#    in a browser.
