//! The lexical rules of SQL: quotes, comments, and where a statement ends. No grammar.
//!
//! PostgreSQL's documentation, "Lexical Structure"; strings are taken as `standard_conforming_strings = on` reads them.

mod shown;
mod split;
mod token;

pub use shown::{MAX_SHOWN_CHARACTERS, shown};
pub use split::{MAX_WORDS, SplitError, Statement, split};
pub use token::{Kind, Token, tokens};
