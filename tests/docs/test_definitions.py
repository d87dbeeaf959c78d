"""What a file of Python defines, and what changed between two versions of it."""

from __future__ import annotations

from quaid.docs.definitions import compare, define_python, join_moved

CLICK = b"""
@cli.group(name="logs")
def logs_group():
    "Tools for logs"

@logs_group.command(name="list")
@click.option("-n", "--count", type=int, default=3, help="How many")
def logs_list(count):
    "Show logs"
    print(count)
"""


def define(text: bytes | str, path: str = "llm/cli.py"):
    found = define_python(path, text if isinstance(text, bytes) else text.encode())
    assert found is not None
    return found


def changed(before: str, after: str) -> dict[str, str]:
    return {change.name: change.part for change in compare("a.py", define(before, "a.py"), define(after, "a.py"))}


def test_a_command_of_click_has_the_words_that_people_type():
    found = define(CLICK)
    assert found["logs_list"].kind == "command"
    assert {"logs_list", "llm.cli.logs_list", "list"} <= set(found["logs_list"].names) | {"list"}
    assert found["logs_list --count"].names == ("--count",)


def test_the_default_of_an_option_is_its_signature():
    before, after = CLICK.decode(), CLICK.decode().replace("default=3", "default=5")
    assert changed(before, after) == {"logs_list --count": "signature"}


def test_a_docstring_is_help_and_a_body_is_neither():
    assert changed("def f(a):\n 'One.'\n return a\n", "def f(a):\n 'Two.'\n return a\n") == {"f": "help"}
    assert changed("def f(a):\n return a\n", "def f(a):\n return a + 1\n") == {"f": "body"}
    assert changed("def f(a):\n return a\n", "def f(a, b=1):\n return a\n") == {"f": "signature"}


def test_an_annotation_is_no_part_of_the_signature():
    before = "def f(a: Optional[str] = None) -> List[str]:\n return [a]\nclass C:\n b: Dict[str, int] = {}\n"
    after = "def f(a: str | None = None) -> list[str]:\n return [a]\nclass C:\n b: dict[str, int] = {}\n"
    assert changed(before, after) == {"f": "body", "C.b": "body"}


def test_comments_and_formatting_change_no_definition():
    assert not changed("X = 1\ndef f(a,b):\n return a\n", "X  =  1  # one\n\n\ndef f(\n  a, b\n):\n    return (a)\n")


def test_fields_constants_variables_endpoints_and_tables_are_definitions():
    found = define(
        "class Model:\n    name: str = 'x'\n"
        "LIMIT = 100\n"
        "def f(app):\n    os.environ.get('LLM_KEY')\n    app.add_route(view, r'/(?P<db>[^/]+)/-/query$')\n"
        "    db.execute('CREATE TABLE IF NOT EXISTS [logs] (id INTEGER)')\n"
    )
    names = {name for each in found.values() for name in each.names}
    assert {"Model.name", "LIMIT", "LLM_KEY", "/{db}/-/query", "logs"} <= names


def test_options_of_argparse_belong_to_their_command():
    found = define(
        "def build(sub):\n    create = sub.add_parser('create', help='Make one')\n"
        "    create.add_argument('--stats', action='store_true')\n"
    )
    assert found["build create"].kind == "command"
    assert found["build create --stats"].scope == "build create"


def test_options_of_typer_are_read_from_defaults_and_annotations():
    found = define(
        "@app.command()\ndef serve(port: Annotated[int, typer.Option('--port', '-p')] = 1, "
        "debug: bool = typer.Option(False)):\n    pass\n"
    )
    assert {"serve --port", "serve --debug"} <= found.keys()
    before = "@app.command()\ndef serve(*, port: Annotated[int, typer.Option('--port')] = 1):\n    pass\n"
    assert changed(before, before.replace("= 1", "= 2")) == {"serve --port": "signature"}


def test_what_moves_to_another_file_is_not_removed():
    before, after = define("def load(a):\n return a\n", "a.py"), define("def load(a, b):\n return a\n", "b.py")
    moved = join_moved([*compare("a.py", before, {}), *compare("b.py", {}, after)])
    assert [(change.path, change.name, change.part) for change in moved] == [("b.py", "load", "signature")]


def test_a_file_that_python_cannot_read_defines_nothing_known():
    assert define_python("a.py", b"def f(:") is None
