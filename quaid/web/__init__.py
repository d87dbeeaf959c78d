"""The local page of `quaid view`: the memory, its sources and its history.

May import Memory, report, purge and every package below them.
Begin with routes.py, the table of all pages and actions.
"""

# How to add a page:
# 1. pages/NAME.py: a function `show_NAME(memory, request)` that returns what its template needs, as a dict. It runs in
#    the thread that owns the memory; a QuaidError that it raises becomes a page with its sentence.
# 2. templates/NAME.html: `{% extends "base.html" %}` and the blocks `title` and `main`. parts.html has the macros for
#    cards, bars, diffs, dates and empty states. No inline scripts or styles: the browser refuses them.
#    Moments are printed by `when` or `clock`, in the zone of the reader; `moment` is for texts without elements. A text
#    of a note or a person has `dir="auto"` on its element.
# 3. routes.py: a `Page`. One with a `title` is in the navigation, in the order of the table: the first four are always
#    visible, the others are in a menu on a narrow screen.
# 4. A change of the memory is an `Action` there: a function `do(memory, form, request)` that returns where to go next,
#    or a `Shown` page if it cannot be done as it is. Its form has `{{ form_token() }}` in it and posts; guard.py has
#    checked all else before the function is called.
# 5. Values that a script fetches are in `FILES` there.
# 6. A part of the page with an id and `data-live` is loaded again when the memory changes. A script of a page is
#    static/NAME.js in the block `scripts`, its styles static/NAME.css in the block `head`; the page is usable without.
# 7. tests/web/test_NAME.py: the fixture `client` loads real pages of a real vault; browsing.py opens them
#    in a browser.
