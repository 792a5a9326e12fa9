"""File changes as values, so that they can be carried out by another process than the one that decided them."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.storage.base import Storage
from drawstring.write.slots import Step


@dataclass(frozen=True)
class NewFile:
    """A file to be created unless it is there; `path` is relative to the table."""

    path: str
    content: bytes


@dataclass(frozen=True)
class Publication:
    """What makes a change visible.

    Files to replace, files to create unless they are there, in order, files to replace by what was created, then
    what is removed. Each step may be repeated.
    """

    creates: tuple[NewFile, ...]
    removes: tuple[str, ...] = ()
    replaces: tuple[NewFile, ...] = ()
    finally_replaces: tuple[NewFile, ...] = ()

    def carry_out(self, storage: Storage) -> None:
        """Do it, or what is left of it."""
        for file in self.replaces:
            storage.write(file.path, file.content)
        for file in self.creates:
            storage.create_if_absent(file.path, file.content)
        for file in self.finally_replaces:
            storage.write(file.path, file.content)
        for path in self.removes:
            storage.delete(path, recursive=True)

    def steps(self) -> tuple[Step, ...]:
        """Return the same as steps of a slot, so that whoever finishes the slot does it.

        Raises `ValueError` for what replaces files: a slot's steps only create and delete.
        """
        if self.replaces or self.finally_replaces:
            raise ValueError("files that are replaced cannot be steps of a slot")
        created = (Step.create(file.path, file.content) for file in self.creates)
        return (*created, *(Step.delete_tree(path) for path in self.removes))
