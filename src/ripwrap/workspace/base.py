"""Base class of `Workspace` and of its blocking twin, with what does not await."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from typing_extensions import deprecated

from ripwrap._concurrency import refuse_copy
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner
from ripwrap._scan.rules import Rule
from ripwrap.binary.resolver import Rg
from ripwrap.errors import named_paths
from ripwrap.options import Directories, ShowDenied, StrPath, check_timeout
from ripwrap.sources.repository import real_directories
from ripwrap.workspace.deny import SECRET_FILES
from ripwrap.workspace.dispatch import MAX_LINE, TIMEOUT, ToolDispatcher, ToolMethods
from ripwrap.workspace.redact import redaction_of
from ripwrap.workspace.results import MAX_CHARS, ToolResult
from ripwrap.workspace.sandbox import Sandbox
from ripwrap.workspace.scope import Settings
from ripwrap.workspace.tool import tools_of

if TYPE_CHECKING:
    from ripwrap.index.embeddings.protocol import Embedder
else:
    Embedder = Any  # annotations can be evaluated without loading the index


class BaseWorkspace(ToolMethods):
    """Roots, limits and options of a workspace, and the texts of its answers."""

    _runner_type: ClassVar[type[AsyncRunner] | type[BlockingRunner]]

    SECRETS: ClassVar[tuple[str, ...]] = SECRET_FILES

    def __reduce__(self) -> NoReturn:
        refuse_copy(self)

    @named_paths
    def __init__(
        self,
        *roots: StrPath,
        follow: bool = False,
        outer_ignore: bool = False,
        guard: bool = True,
        timeout: float | None = TIMEOUT,
        max_chars: int = MAX_CHARS,
        max_line: int = MAX_LINE,
        rg: Rg = None,
        index: bool | StrPath = False,
        anchors: bool = False,
        embedder: "str | Embedder | None" = None,
        hybrid_weight: float | None = None,
        deny: str | Sequence[str] = (),
        show_denied: ShowDenied = "hide",
        redact: bool | Mapping[str, str] | Iterable[Rule] = False,
        write: bool = False,
        repositories: Directories = (),
    ) -> None:
        """Set the directories that the tools may use, and the limits of their answers.

        Args:
            *roots: One or more directories. With one root, paths in answers are relative to that root; with several
                roots, paths are absolute.
            follow: Follow symbolic links. rg may then read files outside of the roots, but no answer shows them.
            outer_ignore: Also apply ignore files above the roots, and git's global ignore file, as rg does.
            guard: Limit the search to one file system, a few levels and 5 or 10 seconds in `/`, in the home directory
                and the directories above it, in `/proc` and similar directories, and on network file systems of Linux.
                The answer then names these limits.
            timeout: Time limit in seconds for a call; `None` is no limit. At the limit, rg is stopped, and the answer
                has the results found so far. Making the answer may take 0.7 seconds more; if it takes longer, the
                answer is an error. A refresh of an index, and a listing for a glob with a slash, may take half of the
                limit. `index_codebase` has no time limit.
            max_chars: Maximum length of an answer, in characters; at least 1,000.
            max_line: Maximum length of a line in an answer, in characters; at least 40.
            rg: The rg to run: a path, or a bare name to find in PATH; with `None`, ripwrap finds an rg.
            index: Location of an index: True for the user's cache, `"project"` for a directory in each root, or the
                path of a directory. False is no index. The first call of `index_codebase` makes the index.
            anchors: Show a short hash of each line after its number, as in `42·k7q`, and offer the tool `resolve`,
                which finds the line of such an anchor after the file has changed.
            embedder: The embedding model of the index, as for `ripwrap.index.Index`: `"wordllama"` on this machine,
                `"provider:model"`, or an `Embedder`. Tools send texts and queries only to this provider. `"auto"` is
                refused, because it lets the environment choose a provider. With `None`, only words are searched, and
                nothing is sent.
            hybrid_weight: Weight of embeddings in the score, from 0 to 1; `None` is 0.34.
            deny: Globs of files and directories that no tool opens. They are as in `.gitignore`, but ignore case:
                `["*.pem", "**/.env*", "secrets/"]`. `Workspace.SECRETS` has globs for the usual files with secrets.
            show_denied: Treatment of denied files in `ls`, `tree` and `find_files`: `"hide"` them, `"count"` them in a
                note, or `"name"` them. Their contents and sizes are never shown.
            redact: Mask keys, tokens and passwords in the lines of all answers, as `[redacted: github-token]`. True
                masks what the built-in rules (`ripwrap.SECRET_RULES`) find. Rules, as for `scan()`, mask what these
                rules find, and private keys; their `path` and `keywords` do not matter, and a rule that may span lines
                is tried on each line.
            write: Offer the tool `replace_content`, which changes files in the roots. Denied files are never changed.
                `ripwrap.undo()` restores the files, with the journals in the user's state directory.
            repositories: Further directories from which git may read with `rev`, such as `["../main/.git"]` for a
                worktree, or the `.git` above a root that is a subdirectory of its repository. Without them, git reads
                only repositories whose directories are all inside the roots; any other repository is refused, because
                the `.git` of a downloaded tree may lead to a repository that the tools must not show.

        Raises:
            FileNotFoundError, NotADirectoryError: A root does not exist, or is not a directory.
            ValueError: There is no root, a root or a directory of `repositories` is an empty string, a number is too
                small or out of range, a glob in `deny` is invalid, `show_denied` is unknown, `embedder` is `"auto"` or
                given without `index`, `hybrid_weight` is given without `embedder`, or a rule in `redact` cannot mask
                secrets, because its pattern may take too long, or is not one of Python.
            TypeError: A glob in `deny` is not a string, or another argument has a wrong type.
            EmbeddingError: The embedder is unknown, or its package or key is missing.
        """
        settings = Settings(
            Sandbox(roots, deny=deny),
            follow,
            outer_ignore,
            guard,
            check_timeout(timeout),
            max_chars,
            max_line,
            show_denied=show_denied,
            redact=redaction_of(redact),
            anchors=anchors,
            write=write,
            repositories=real_directories(repositories),
        )
        self._tools = ToolDispatcher(
            tools_of(type(self)), settings, index, self._runner_type(rg), embedder=embedder, hybrid_weight=hybrid_weight
        )

    @property
    def roots(self) -> tuple[str, ...]:
        """Real paths of the directories that the tools may use."""
        return self._tools.settings.sandbox.roots

    def text(self, result: ToolResult) -> str:
        """Return the text that the tool itself would return for a result of its `…_result` method."""
        return self._tools.text(result)

    def structured(self, result: ToolResult) -> dict[str, Any]:
        """Return the JSON values of a result of a `…_result` method, at most `max_chars` characters of JSON."""
        return self._tools.structured(result)

    def error_text(self, error: Exception) -> str:
        """Return the text `Error: …` that the tool itself would return for an error of its `…_result` method."""
        return self._tools.error_text(error)

    @deprecated("complaint() was renamed to error_text()")
    def complaint(self, error: Exception) -> str:
        """Return `error_text(error)`. Deprecated."""
        return self.error_text(error)
