"""SHA-256 hashes of release assets. Each hash was confirmed by at least two independent sources.

An asset that is not in the table `PINS` has no pinned hash. `scripts/compare_pins.py` compares the table with other
sources.
"""

import re
from types import MappingProxyType

DEFAULT_VERSION = "15.2.0"
"""Newest release whose hashes are in `PINS`."""

BASE_URL = "https://github.com/BurntSushi/ripgrep/releases/download"
"""Base address of rg's releases on GitHub. The base address of a mirror may take its place."""

MAX_ARCHIVE_BYTES = 32 * 1024 * 1024
"""Maximum size in bytes of an archive that is downloaded; releases have under 3 MB."""

MAX_BINARY_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of an rg that is extracted; releases have under 7 MB."""

PINS = MappingProxyType(
    {
        ("14.1.1", "x86_64-unknown-linux-musl"): "4cf9f2741e6c465ffdb7c26f38056a59e2a2544b51f7cc128ef28337eeae4d8e",
        ("14.1.1", "x86_64-apple-darwin"): "fc87e78f7cb3fea12d69072e7ef3b21509754717b746368fd40d88963630e2b3",
        ("14.1.1", "aarch64-apple-darwin"): "24ad76777745fbff131c8fbc466742b011f925bfa4fffa2ded6def23b5b937be",
        ("14.1.1", "aarch64-unknown-linux-gnu"): "c827481c4ff4ea10c9dc7a4022c8de5db34a5737cb74484d62eb94a95841ab2f",
        ("14.1.1", "x86_64-pc-windows-msvc"): "d0f534024c42afd6cb4d38907c25cd2b249b79bbe6cc1dbee8e3e37c2b6e25a1",
        ("14.1.1", "i686-pc-windows-msvc"): "1e5c99e4851c964152db07c79151982c7fa7a549b645b6b47daae07a9c185f8e",
        ("15.0.0", "x86_64-unknown-linux-musl"): "253ad0fd5fef0d64cba56c70dccdacc1916d4ed70ad057cc525fcdb0c3bbd2a7",
        ("15.0.0", "x86_64-apple-darwin"): "44128c733d127ddbda461e01225a68b5f9997cfe7635242a797f645ca674a71a",
        ("15.0.0", "aarch64-apple-darwin"): "98bb2e61e7277ba0ea72d2ae2592497fd8d2940934a16b122448d302a6637e3b",
        ("15.0.0", "aarch64-unknown-linux-gnu"): "15f8cc2fab12d88491c54d49f38589922a9d6a7353c29b0a0856727bcdf80754",
        ("15.0.0", "x86_64-pc-windows-msvc"): "21a98bf42c4da97ca543c010e764cc6dec8b9b7538d05f8d21874016385e0860",
        ("15.0.0", "i686-pc-windows-msvc"): "acb9918e9f3a88bd171143d663ffb12e8ab765b48bb449f8e7d8f1c7c1bd8311",
        ("15.0.0", "aarch64-pc-windows-msvc"): "572709c8770cb7f9385d725cb06d2bcd9537ec24d4dd17b1be1d65a876f8b591",
        ("15.1.0", "x86_64-unknown-linux-musl"): "1c9297be4a084eea7ecaedf93eb03d058d6faae29bbc57ecdaf5063921491599",
        ("15.1.0", "x86_64-apple-darwin"): "64811cb24e77cac3057d6c40b63ac9becf9082eedd54ca411b475b755d334882",
        ("15.1.0", "aarch64-apple-darwin"): "378e973289176ca0c6054054ee7f631a065874a352bf43f0fa60ef079b6ba715",
        ("15.1.0", "aarch64-unknown-linux-gnu"): "2b661c6ef508e902f388e9098d9c4c5aca72c87b55922d94abdba830b4dc885e",
        ("15.1.0", "x86_64-pc-windows-msvc"): "124510b94b6baa3380d051fdf4650eaa80a302c876d611e9dba0b2e18d87493a",
        ("15.1.0", "i686-pc-windows-msvc"): "725be85a1e8f92878a548f40ee4f6df64bc93b809586462b3c6d884e1de1e83a",
        ("15.1.0", "aarch64-pc-windows-msvc"): "00d931fb5237c9696ca49308818edb76d8eb6fc132761cb2a1bd616b2df02f8e",
        ("15.1.0", "x86_64-pc-windows-gnu"): "0bf217086ecb1392070020810b888bd405cb1dd5f088c16c45d9de1e5ea6b638",
        ("15.2.0", "x86_64-unknown-linux-musl"): "33e15bcf1624b25cdd2a55813a47a2f95dbe126268203e76aa6a585d1e7b149c",
        ("15.2.0", "x86_64-apple-darwin"): "af7825fcc69a2afc7a7aea55fc9af90e26421d8f20fe59df32e233c0b8a231c1",
        ("15.2.0", "aarch64-apple-darwin"): "3750b2e93f37e0c692657da574d7019a101c0084da05a790c83fd335bad973e4",
        ("15.2.0", "aarch64-unknown-linux-gnu"): "a740b91c82eaf9914cfedd353572f2791cbe0162c84101ee0951058f4dcbc90d",
        ("15.2.0", "aarch64-unknown-linux-musl"): "800b1e7206afe799dfb5a6901f23147cfaabe0e52210538100f61e86e1740915",
        ("15.2.0", "x86_64-pc-windows-msvc"): "71b2fef860abe467217a538ff31de02f5258807c0129f771846f87bd029aafc5",
        ("15.2.0", "i686-pc-windows-msvc"): "9bf73bdb3fda9ad4b0235e1295b02c717031c986afa4d7c05dd0af8b74010a95",
        ("15.2.0", "aarch64-pc-windows-msvc"): "e4abca10c3a64ebea742667dd7009449d49403db5460dd6873e389fa2945360f",
        ("15.2.0", "armv7-unknown-linux-gnueabihf"): "d859589734d9d802107ad9eff6a78cfd9b0080d2fecb0ad8772605b35e373199",
        (
            "15.2.0",
            "armv7-unknown-linux-musleabihf",
        ): "0332b481aa007969a54d5c19e793208e73405c48d38f226bdee56b9ed085cdde",
    }
)
"""SHA-256 of an archive, by its version and target (platform)."""


def asset_name(version: str, target: str) -> str:
    """Return the file name of an archive: the name of its only directory, and the extension of its format."""
    return f"{folder_name(version, target)}.{'zip' if '-windows-' in target else 'tar.gz'}"


def folder_name(version: str, target: str) -> str:
    """Return the name of the directory in an archive; the directory in the cache has the same name."""
    return f"ripgrep-{version}-{target}"


def parse_folder_name(name: str) -> tuple[str, str]:
    """Return the version and target in a name that `folder_name()` made; two empty texts for any other name."""
    found = re.fullmatch(r"ripgrep-(\d[\w.]*)-(.+)", name)
    return (found[1], found[2]) if found else ("", "")


def wrong_release(archive: str, actual: str, expected: str) -> str:
    """Return the text of an error about an archive that has another version of rg than expected."""
    return (
        f"{archive}: this is rg {actual}, expected {expected}; put the archive of rg {expected} into the "
        "mirror, or name another mirror: RIPWRAP_MIRROR=…"
    )
