//! Grants, holds and blocks of bytes: the arithmetic.
