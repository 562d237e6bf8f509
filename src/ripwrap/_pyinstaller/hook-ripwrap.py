"""What a program frozen by PyInstaller needs besides the modules that it imports: late imports, and rg.

PyInstaller runs this file, and reads the variables (https://pyinstaller.org/en/stable/hooks.html).
"""

from importlib.metadata import PackageNotFoundError, files
from importlib.util import find_spec

from PyInstaller.utils.hooks import collect_data_files, collect_submodules, copy_metadata

from ripwrap.binary.cache import NAME
from ripwrap.binary.resolver import WHEEL

# ripwrap imports its modules when they are used, by names in texts. A program that uses one of these two imports it.
_LEFT_OUT = ("ripwrap.frameworks", "ripwrap.testing", "ripwrap._pyinstaller")
# Small packages of the extras, also imported by names in texts, if they are installed.
_LATE = ("charset_normalizer", "inflate64", "semble_grammars", "tree_sitter")

hiddenimports = collect_submodules("ripwrap", filter=lambda name: not name.startswith(_LEFT_OUT), on_error="ignore")
hiddenimports += [name for name in _LATE if find_spec(name)]
datas = copy_metadata("ripwrap") + collect_data_files("ripwrap", includes=["mcp/*.json"])
if find_spec("semble_grammars"):
    datas += collect_data_files("semble_grammars")

# The wheel of rg has no module. ripwrap looks for its program where `pip install --target` puts it: `bin/rg`.
try:
    binaries = [(str(file.locate()), "bin") for file in files(WHEEL) or () if file.name == NAME]
    datas += copy_metadata(WHEEL)
except PackageNotFoundError:
    binaries = []
