"""Former names of `drawstring.write.key_generator`, until nothing imports them."""

from __future__ import annotations

from drawstring.model.key_names import EMPTY_KEY_PART as EMPTY_KEY_PART
from drawstring.model.key_names import NULL_KEY_PART as NULL_KEY_PART
from drawstring.model.key_names import NULL_PARTITION as NULL_PARTITION
from drawstring.write.key_generator import ESCAPED_CHARACTERS as ESCAPED_CHARACTERS
from drawstring.write.key_generator import KeyGenerator as KeyRule
from drawstring.write.key_generator import ambiguous_key as ambiguous_key
from drawstring.write.key_generator import check_keys as check_keys
from drawstring.write.key_generator import check_partition_path as check_partition_path
from drawstring.write.key_generator import is_derivable as is_derivable
from drawstring.write.key_generator import key_generator as key_rule
from drawstring.write.key_generator import missing_key as missing_key
from drawstring.write.key_generator import partition_paths as derive_paths
from drawstring.write.key_generator import record_keys as derive_keys
from drawstring.write.key_generator import reserved_partition_value as reserved_partition_value

__all__ = ["KeyRule", "derive_keys", "derive_paths", "key_rule"]
