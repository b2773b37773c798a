"""Values of a Hugging Face configuration, checked one by one with all faults gathered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["ConfigFields", "shown"]

_MOST = 10_000_000
_MOST_LAYERS = 10_000


class ConfigFields:
    """Reader of one configuration's keys.

    A value that is missing or absurd is noted in :attr:`faults` and read as the least allowed one, so that
    the reading goes on and finds the other faults.

    Parameters
    ----------
    config
        The configuration, or the part of it that describes the text model.
    outer
        The configuration around it, where there is one; asked for keys that stand outside.
    """

    def __init__(self, config: Mapping[str, object], outer: Mapping[str, object] | None = None) -> None:
        self._config = config
        self._outer = outer or {}
        self.faults: list[tuple[str, str]] = []

    def has(self, key: str) -> bool:
        """Return whether the key is there and not null."""
        return self._config.get(key) is not None

    def is_null(self, key: str) -> bool:
        """Return whether the key is there and null."""
        return key in self._config and self._config[key] is None

    def count(self, *keys: str, default: int | None = None, least: int = 1, most: int = _MOST) -> int:
        """Return a whole number.

        Parameters
        ----------
        *keys
            Spellings of the key; the first that is there is read.
        default
            The value where none is there; ``None`` makes that a fault.
        least, most
            The range allowed [1].
        """
        key = next((key for key in keys if self.has(key)), None)
        if key is None:
            if default is None:
                self.fault(keys[0], f"is missing; it must be a whole number of at least {least}")
            return least if default is None else default
        value = self._config[key]
        if not isinstance(value, int) or isinstance(value, bool):
            self.fault(key, f"must be a whole number, not {shown(value)}")
        elif not least <= value <= most:
            self.fault(key, f"must be between {least} and {most}, not {shown(value)}")
        else:
            return value
        return least

    def layers(self, *keys: str) -> int:
        """Return the number of layers.

        Parameters
        ----------
        *keys
            Spellings of the key.
        """
        return self.count(*keys, most=_MOST_LAYERS)

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a truth value, looked for outside too.

        Parameters
        ----------
        key
            The key.
        default
            The value where it is not there.
        """
        value = self._config.get(key)
        value = self._outer.get(key) if value is None else value
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.fault(key, f"must be true or false, not {shown(value)}")
        return default

    def text(self, key: str, *, default: str = "") -> str:
        """Return a text.

        Parameters
        ----------
        key
            The key.
        default
            The value where it is not there.
        """
        value = self._config.get(key)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.fault(key, f"must be text, not {shown(value)}")
        return default

    def ratio(self, key: str, *, default: float) -> float:
        """Return a positive number.

        Parameters
        ----------
        key
            The key.
        default
            The value where it is not there.
        """
        value = self._config.get(key)
        if value is None:
            return default
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1000:
            return float(value)
        self.fault(key, f"must be a number above 0 and up to 1000, not {shown(value)}")
        return default

    def inner(self, key: str) -> ConfigFields:
        """Return a reader of an object under a key, whose faults are noted here.

        Parameters
        ----------
        key
            The key; an absent one reads as an empty object.
        """
        value = self._config.get(key)
        if value is not None and not isinstance(value, Mapping):
            self.fault(key, f"must be an object, not {shown(value)}")
            value = None
        reader = ConfigFields(value or {})
        reader.faults = self.faults
        return reader

    def layer_kinds(self, key: str, layers: int) -> Sequence[str] | None:
        """Return the kind of each layer, or ``None`` where the key is not there.

        Parameters
        ----------
        key
            The key of a list of texts.
        layers
            How long the list must be.
        """
        value = self._config.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(kind, str) for kind in value):
            self.fault(key, f"must be a list of texts, not {shown(value)}")
            return None
        if len(value) != layers:
            self.fault(key, f"has {len(value)} entries, but there are {layers} layers")
            return None
        return value

    def layer_numbers(self, key: str) -> Sequence[int] | None:
        """Return a list of whole numbers, or ``None`` where the key is not there.

        Parameters
        ----------
        key
            The key.
        """
        value = self._config.get(key)
        if value is None:
            return None
        whole = isinstance(value, list) and all(type(number) is int for number in value)
        if not whole or not isinstance(value, list) or len(value) > _MOST_LAYERS:
            self.fault(key, f"must be a list of at most {_MOST_LAYERS} whole numbers, not {shown(value)}")
            return None
        return value

    def is_faulty(self, *keys: str) -> bool:
        """Return whether a fault was noted at one of the keys."""
        return any(key in keys for key, _ in self.faults)

    def fault(self, key: str, message: str) -> None:
        """Note a fault once.

        Parameters
        ----------
        key, message
            Where it is; what was given, why it cannot be, what to do.
        """
        if (key, message) not in self.faults:
            self.faults.append((key, message))


def shown(value: object) -> str:
    """Return a value as JSON spells it, cut short.

    Parameters
    ----------
    value
        What was given.
    """
    import json

    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number over 20 digits long"
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    text = json.dumps(value, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."
