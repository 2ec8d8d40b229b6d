"""Directory trees packed as an OCI image archive, as `ctr images import` and `podman load` take it.

Nothing of this machine may show in the bytes: entries are sorted, times are one time, owners are
root's or those that the caller says.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JSON = dict[str, Any]
TYPE = "application/vnd.oci.image"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """What an archive holds: layers from the bottom up, and what an engine runs."""

    name: str
    layers: list[Path]
    entrypoint: list[str]
    user: str
    command: list[str] = field(default_factory=list)
    env: Mapping[str, str] = field(default_factory=dict)
    # Paths of the image whose trees belong to another user than root: "var/log/squid": 13.
    owners: Mapping[str, int] = field(default_factory=dict)
    created: int = 0


def write(image: Image, path: Path) -> None:
    """Write the archive, whole or not at all."""
    blobs: dict[str, bytes] = {}

    def store(content: bytes, kind: str) -> JSON:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"{TYPE}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    tars = [_layer(tree, image) for tree in image.layers]
    layers = [store(gzip.compress(tar, 6, mtime=0), "layer.v1.tar+gzip") for tar in tars]
    config = store(_json(_config(image, tars)), "config.v1+json")
    kind = "manifest.v1+json"
    document = {"schemaVersion": 2, "mediaType": f"{TYPE}.{kind}"}
    manifest = store(_json({**document, "config": config, "layers": layers}), kind)
    manifest["platform"] = {"os": "linux", "architecture": _architecture()}
    # containerd takes its name for the image from the first, other engines from the second.
    manifest["annotations"] = {
        "io.containerd.image.name": image.name,
        "org.opencontainers.image.ref.name": image.name,
    }
    index = {"schemaVersion": 2, "mediaType": f"{TYPE}.index.v1+json", "manifests": [manifest]}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        **dict(sorted(blobs.items())),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    with tarfile.open(partial, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), image.created
            archive.addfile(entry, io.BytesIO(content))
    partial.replace(path)


def _config(image: Image, tars: list[bytes]) -> JSON:
    env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **image.env}
    return {
        "os": "linux",
        "architecture": _architecture(),
        "config": {
            "Entrypoint": image.entrypoint,
            "Cmd": image.command,
            "User": image.user,
            "Env": [f"{name}={value}" for name, value in env.items()],
            "WorkingDir": "/",
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": [f"sha256:{hashlib.sha256(tar).hexdigest()}" for tar in tars],
        },
    }


def _architecture() -> str:
    return ARCHITECTURES[os.uname().machine]


def _json(value: JSON) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _layer(tree: Path, image: Image) -> bytes:
    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = image.created
        entry.uname = entry.gname = ""
        owner = (uid for path, uid in image.owners.items() if _is_within(entry.name, path))
        entry.uid = entry.gid = next(owner, 0)
        # Nobody in an image becomes another by running a file; the sticky bit stays.
        entry.mode &= 0o1777
        return entry

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(tree.rglob("*")):
            tar.add(path, str(path.relative_to(tree)), recursive=False, filter=plain)
    return out.getvalue()


def _is_within(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")
