"""Built-in rules for keys, tokens and passwords; their import makes Pydantic's first validator, which takes 15 ms."""

from ripwrap._scan.rules import Allowlist, Rule, allow_comment

_ASCII = "0-9A-Za-z_-"
_EDGE = r"(?:(?-u:\b)|_)"
_AWS = "(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"
_LETTERS = r"0-9A-Za-z_\u0080-\U0010FFFF"
r"""Letters of names, and all characters that are not ASCII: rg needs much longer for `\w`, which is a large class."""

_NAME = (
    r"(?i:(?:pass(?:word|wd|phrase|code)|\bpwd|_pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
    rf"[{_LETTERS}.-]{{0,40}})"
)
_ASSIGNED = rf"[\"'\]]{{0,2}}(?:\s{{0,9}}:\s{{0,9}}[{_LETTERS}.\[\]|]{{1,40}})?\s{{0,9}}(?:=>|:=|==?|:)\s{{0,9}}"
_VARIABLE = (
    r"(?:^|[^\w.])(?:[A-Z0-9]{1,40}_){0,10}(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|CREDENTIALS?"
    r"|(?:API|ACCESS|SECRET|PRIVATE|AUTH|MASTER)_?KEY)(?:_[A-Z0-9]{1,40}){0,5}="
)


def _value(character: str, least: int, most: str = "", end: str = "") -> str:
    """Return the pattern of a value that does not begin like a placeholder; one of its two groups is the value.

    Placeholders begin with `${`, `$(`, `{`, `%(`, `%s`, `***` or `[redacted: `, or are `<…>` of up to 42 characters.
    """

    def first(others: str) -> str:
        return character.replace("[^", f"[^{others}", 1)

    def rest(done: int) -> str:
        return f"{character}{{{max(least - done, 0)},{most}}}"

    mask = "redacted: "
    values = [
        first(r"${<%*\[") + rest(1),
        rf"\${first('({')}{rest(2)}",
        rf"%{first('(s')}{rest(2)}",
        rf"\*(?:{first('*')}{rest(2)}|\*{first('*')}{rest(3)})",
        *(rf"\[{mask[:size]}{first(mask[size])}{rest(size + 2)}" for size in range(len(mask))),
    ]
    if "<" in character:
        return f"({'|'.join(values)})"
    begun = first("<>")
    values.append(f"<(?:>{rest(2)}|{begun}{{0,40}}<{rest(2)}|{begun}{{41}}{rest(42)})")
    return f"(?:({'|'.join(values)})|(<{begun}{{{least - 1},40}}){end})"


_IN_QUOTES = "|".join(
    f"{quote}{_value(character, 4)}{quote}" for quote, character in (('"', r'(?:[^"\\]|\\.)'), ("'", r"(?:[^'\\]|\\.)"))
)
_IN_URL = r"[^ \t\n\v\f\r/?#\"'<>]"
_WORD = r"[^ \t\n\v\f\r\"']"
_NO_DIGIT = Allowlist(regexes=(r"^[^0-9]*$",))

_PATTERNS = {
    "aws-access-key": f"{_EDGE}({_AWS}(?:_{_AWS})*){_EDGE}",
    "aws-secret-key": rf"(?i:aws)[{_LETTERS}.-]{{0,40}}{_ASSIGNED}[\"']?([A-Za-z0-9/+]{{40}})(?:[^A-Za-z0-9/+]|$)",
    "github-token": rf"{_EDGE}(gh(?:p|o|u|s|r)_[A-Za-z0-9]{{20,}}|github_pat_[0-9A-Za-z_]{{22,}})",
    "gitlab-token": f"{_EDGE}(gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.=-]{{20,}})",
    "slack-token": rf"{_EDGE}((?:xox[a-z](?:\.xox[a-z])?-|xapp-[0-9]-)[A-Za-z0-9-]{{10,}})",
    "slack-webhook": r"hooks\.slack\.com/(?:services|workflows|triggers)/([0-9A-Za-z_/+-]{20,})",
    "stripe-key": f"{_EDGE}((?:[sr]k_(?:test|live|prod)_|whsec_)[A-Za-z0-9]{{10,}})",
    "google-key": rf"(AIza[{_ASCII}]{{35}}|GOCSPX-[{_ASCII}]{{20,}})|{_EDGE}(ya29\.[{_ASCII}]{{20,}})",
    "anthropic-key": rf"{_EDGE}(sk-ant-[{_ASCII}]{{20,}})",
    "openai-key": rf"{_EDGE}(sk-(?:(?:proj|svcacct|admin)-[{_ASCII}]{{20,}}|[A-Za-z0-9]{{32,}}))",
    "jwt": rf"(?:^|[^\w-])(ey[{_ASCII}]{{10,}}\.ey[{_ASCII}]{{10,}}\.[{_ASCII}]*)",
    "url-password": rf"://[^ \t\n\v\f\r/?#\"'<>:@]{{0,256}}:{_value(_IN_URL, 1, '255')}@",
    "url-token": f"://([{_ASCII}]{{20,256}})@",
    "password": f"{_NAME}{_ASSIGNED}[a-zA-Z]{{0,2}}(?:{_IN_QUOTES})",
    "password/env": _VARIABLE + _value(_WORD, 4, end=r"(?:[\s\"']|$)"),
    "password/config": rf"{_NAME}[\"']?\s{{0,9}}[:=]\s{{0,9}}([^\s\"'`(){{}}\[\]<>$,;]{{8,200}})\s*$",
}
_EXCEPTIONS = {"password/config": (_NO_DIGIT, allow_comment())}

SECRET_RULES: tuple[Rule, ...] = tuple(
    Rule(id=name, pattern=pattern, allowlists=_EXCEPTIONS.get(name, (allow_comment(),)))
    for name, pattern in _PATTERNS.items()
)
"""Built-in rules, which `scan()` and `Workspace(redact=True)` use.

Masks have the part of a name before `/`, the kind of the secret; names with levels are those of SARIF 2.1.0, 3.5.4.
"""
