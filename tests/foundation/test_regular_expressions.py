"""Every regular expression of the arena and its packages takes linear time on 100 kB of its own first character."""

import ast
import importlib
import re
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ROOT = Path(__file__).parents[2]
APPLICATIONS = ("agents", "arena_site", "cohorts", "foundation", "markets", "scoring")
SIZE, SECONDS = 100_000, 0.5
METHODS = ("search", "match", "fullmatch", "finditer")
METHOD_OF = {"findall": "finditer", "sub": "finditer", "subn": "finditer", "split": "finditer"}


def modules() -> Iterator[tuple[str, Path]]:
    folders = [(path, path) for path in sorted(ROOT.glob("packages/*/src"))]
    folders += [(ROOT, ROOT / name) for name in APPLICATIONS]
    for base, folder in folders:
        for file in sorted(folder.rglob("*.py")):
            if "migrations" not in file.parts and "re." in file.read_text():
                yield ".".join(file.relative_to(base).with_suffix("").parts).removesuffix(".__init__"), file


def patterns() -> Iterator[tuple[str, re.Pattern, set[str]]]:
    """Each pattern that stands as a constant in the code: its place, itself and the methods by which it is used."""
    sources = {name: file.read_text() for name, file in modules()}
    used_methods = methods_by_name("\n".join(sources.values()))
    for name, source in sources.items():
        tree = ast.parse(source)
        assigned = {id(node.value): node.targets[0] for node in ast.walk(tree) if isinstance(node, ast.Assign)}
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call) or not call.args or not isinstance(call.func, ast.Attribute):
                continue
            if not isinstance(call.func.value, ast.Name) or call.func.value.id != "re":
                continue
            function = call.func.attr
            constant = assigned.get(id(call))
            label = f"{name}:{ast.unparse(constant) if constant else call.lineno}"
            if function == "escape":
                continue
            if (pattern := compiled(name, call)) is None:
                continue
            methods = {METHOD_OF.get(function, function)}
            if function == "compile":
                methods = used_methods[ast.unparse(constant)] if constant else set()
            yield label, pattern, methods or set(METHODS)


def compiled(module: str, call: ast.Call) -> re.Pattern | None:
    """The pattern of a call; None if it is made of variables."""
    scope = vars(importlib.import_module(module))
    flags = re.RegexFlag(0)
    values: list[Any] = []
    for argument in [*call.args, *[keyword.value for keyword in call.keywords]]:
        try:
            values.append(eval(ast.unparse(argument), scope))
        except (NameError, AttributeError):
            values.append(None)
        if isinstance(values[-1], re.RegexFlag):
            flags |= values[-1]
    return None if values[0] is None else re.compile(values[0], flags)


def methods_by_name(source: str) -> dict[str, set[str]]:
    """By constant, the methods of a pattern that the code calls or hands on; none where it hands on the pattern."""
    methods = defaultdict[str, set[str]](set)
    for name, method in re.findall(r"\b(\w+)(?=\.([a-z]+)\b)", source):
        methods[name] |= {METHOD_OF.get(method, method)} & set(METHODS)
    return methods


def beginnings(tree: Any) -> list[str]:
    """Characters with which a match may begin."""
    found: list[str] = []
    for kind, value in tree:
        if kind is kinds.LITERAL:
            return [*found, chr(value)]
        if kind in (kinds.ANY, kinds.NOT_LITERAL):
            return [*found, "a"]
        if kind is kinds.IN:
            return [*found, *members(value)]
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
            found += beginnings(value[2])
            if value[0]:
                return found
        if kind in (kinds.SUBPATTERN, kinds.ATOMIC_GROUP):
            return found + beginnings(value[-1] if kind is kinds.SUBPATTERN else value)
        if kind is kinds.BRANCH:
            for branch in value[1]:
                found += beginnings(branch)
            return found
    return found


def members(items: Any) -> list[str]:
    """Some characters of a class."""
    choice = " \t\n09azAZ.-_,$%'\"{[(<:+/é…"
    pattern = parser.SubPattern(parser.State())
    pattern.append((kinds.IN, items))
    compiled_class = re._compiler.compile(pattern)  # type: ignore[attr-defined]
    present = [letter for letter in choice if compiled_class.match(letter)]
    return present or [chr(value) for kind, value in items if kind is kinds.LITERAL][:3]


def opening(tree: Any) -> str:
    """The text with which every match begins."""
    text = ""
    for kind, value in tree:
        if kind is not kinds.LITERAL:
            break
        text += chr(value)
    return text


def ends_in_time(use: Callable[[Any], Any], text: Any) -> bool:
    """Whether a search ends; Python's engine sees signals."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)  # processor time: a busy machine is no fault of a pattern
    try:
        list(use(text) or ())
    except TimeoutError:
        return False
    except TypeError:
        return True  # a match is no list
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return True


def slow_texts(pattern: re.Pattern, methods: set[str]) -> Iterator[tuple[str, str, str]]:
    """The texts, by what they repeat and end with, and the methods with which the pattern takes long."""
    is_binary = isinstance(pattern.pattern, bytes)
    source = pattern.pattern.decode() if is_binary else pattern.pattern
    tree = parser.parse(source, pattern.flags & ~re.UNICODE if is_binary else pattern.flags)
    if "REPEAT" not in repr(tree):
        return  # each place costs the same
    for start in dict.fromkeys(filter(None, [*beginnings(tree), opening(tree)])):
        for tail in ("", "\0", "\n"):
            text: Any = start * (SIZE // len(start)) + tail
            if is_binary:
                text = text.encode()
            for method in methods:
                if not ends_in_time(getattr(pattern, method), text):
                    yield start, tail, method


def test_every_pattern_is_linear() -> None:
    found = list(patterns())
    assert len(found) > 100
    slow = {label: texts for label, pattern, methods in found if (texts := list(slow_texts(pattern, methods)))}
    assert slow == {}


def test_quadratic_pattern_is_seen() -> None:
    assert not ends_in_time(re.compile(r"\s*%\s*$").search, " " * SIZE)
