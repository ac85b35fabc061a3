//! What the text of a statement says of the state that it may leave in a session.
//!
//! This is no SQL parser: it finds words, in any case, wherever they stand. A word in a comment or in a string costs a
//! needless look at the session; a word that is put together at run time, or hidden inside a function, is not found.
//! Plain statements cost a fraction of an instruction for each byte.

mod resets;
mod settings_named;
#[cfg(test)]
mod tests;

pub use settings_named::{MAX_PARAMETER_NAME_BYTES, Named, is_parameter_name, parameters_named};

use std::ops::{BitOr, BitOrAssign};

/// A set of marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Markers(u16);

impl Markers {
    /// No mark.
    pub const NONE: Self = Self(0);
    /// `advisory`, other than in the name of a function that unlocks.
    pub const ADVISORY: Self = Self(1);
    /// `advisory_unlock`: a lock of the session may be gone.
    pub const ADVISORY_UNLOCK: Self = Self(1 << 1);
    /// `set_config`, unless each is for the transaction alone; or a `SET` anywhere in a `DO` block.
    pub const SET_CONFIG: Self = Self(1 << 2);
    /// `temp`, as in `CREATE TEMP TABLE` and `pg_temp`.
    pub const TEMP: Self = Self(1 << 3);
    /// `hold`, as in `DECLARE … CURSOR WITH HOLD`.
    pub const HOLD: Self = Self(1 << 4);
    /// `deallocate`.
    pub const DEALLOCATE: Self = Self(1 << 5);
    /// `discard`.
    pub const DISCARD: Self = Self(1 << 6);
    /// `prepare`, as in `PREPARE … AS` and `PREPARE TRANSACTION`.
    pub const PREPARE: Self = Self(1 << 7);
    /// A statement that begins with `SET` and is for the session.
    pub const SET: Self = Self(1 << 8);
    /// A statement that begins with `SET LOCAL` or another `SET` for the transaction alone.
    pub const SET_LOCAL: Self = Self(1 << 9);
    /// Nothing but statements with which drivers take a session back to its start, `RESET ALL` among them: what those
    /// statements say is said by this mark, by `DEALLOCATE` and by `DISCARD` alone.
    pub const RESET_ALL: Self = Self(1 << 10);
    /// All marks that make a session suspect: for a text that is too long to be looked at.
    pub const UNKNOWN: Self = Self(
        Self::ADVISORY.0 | Self::SET_CONFIG.0 | Self::TEMP.0 | Self::HOLD.0 | Self::PREPARE.0 | Self::SET.0,
    );

    /// True without any mark.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if it has one of the marks of `other` at least.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Without the marks of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Markers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Markers {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The marks of a text: the statements of a Query, or the one of a Parse. A zero byte at its end is of no account.
#[must_use]
#[inline]
pub fn markers(text: &[u8]) -> Markers {
    // Nearly every text ends here: it does not begin with a word of interest, and no rare letters are in it.
    if !begins_with_interest(text) && !has_rare_letters(text) {
        return Markers::NONE;
    }
    look_closer(text)
}

/// The words that are looked for, lower case, and their marks.
const WORDS: [(&[u8], Markers); 7] = [
    (b"advisory", Markers::ADVISORY),
    (b"set_config", Markers::SET_CONFIG),
    (b"temp", Markers::TEMP),
    (b"hold", Markers::HOLD),
    (b"deallocate", Markers::DEALLOCATE),
    (b"discard", Markers::DISCARD),
    (b"prepare", Markers::PREPARE),
];

/// Three letters, which seldom stand together in SQL, of each word that may stand inside a statement that begins as most
/// do. The other words begin statements of their own.
const RARE_LETTERS: [[u8; 3]; 3] = [*b"dvi", *b"nfi", *b"emp"];

/// Bytes that are looked at in one step; the compiler makes vector instructions of it.
const STEP_BYTES: usize = 16;
/// With those behind them that belong to the last of them.
const WINDOW_BYTES: usize = STEP_BYTES + 2;

/// True if some of them stand anywhere, or a semicolon between two statements.
fn has_rare_letters(text: &[u8]) -> bool {
    let text = trim_end(text);
    let mut nearest = [u8::MAX; STEP_BYTES];
    let Some(last_at) = text.len().checked_sub(WINDOW_BYTES) else {
        let mut only = [0; WINDOW_BYTES];
        only[..text.len()].copy_from_slice(text);
        come_near(&mut nearest, &only);
        return nearest.contains(&0);
    };
    let mut at = 0;
    while let Some(window) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        come_near(&mut nearest, window);
        at += STEP_BYTES;
    }
    // The last window may overlap the one before it.
    if let Some(window) = text.get(last_at..).and_then(|rest| rest.first_chunk()) {
        come_near(&mut nearest, window);
    }
    nearest.contains(&0)
}

/// Zero where something that is looked for begins, and stays so.
#[inline]
fn come_near(nearest: &mut [u8; STEP_BYTES], window: &[u8; WINDOW_BYTES]) {
    for (at, nearest) in nearest.iter_mut().enumerate() {
        // Makes letters lower case; what else it changes becomes none of the letters that are looked for.
        let [a, b, c] = [window[at] | 0x20, window[at + 1] | 0x20, window[at + 2] | 0x20];
        let mut least = window[at] ^ b';';
        for [x, y, z] in RARE_LETTERS {
            least = least.min((a ^ x) | (b ^ y) | (c ^ z));
        }
        *nearest = (*nearest).min(least);
    }
}

/// Without the zero, the spaces and the semicolon at its end.
fn trim_end(text: &[u8]) -> &[u8] {
    let mut text = text;
    while let [rest @ .., 0 | b' ' | b';' | b'\n' | b'\r' | b'\t'] = text {
        text = rest;
    }
    text
}

/// True if the text begins with something other than the words that most statements begin with.
#[inline]
fn begins_with_interest(text: &[u8]) -> bool {
    let Some(first) = text.first_chunk::<4>() else { return !trim_end(text).is_empty() };
    let word = u32::from_le_bytes(*first) | 0x2020_2020;
    const SELECT: u32 = u32::from_le_bytes(*b"sele");
    const INSERT: u32 = u32::from_le_bytes(*b"inse");
    const UPDATE: u32 = u32::from_le_bytes(*b"upda");
    const DELETE: u32 = u32::from_le_bytes(*b"dele");
    const BEGIN: u32 = u32::from_le_bytes(*b"begi");
    const COMMIT: u32 = u32::from_le_bytes(*b"comm");
    const END: u32 = u32::from_le_bytes(*b"end\x20");
    const ROLLBACK: u32 = u32::from_le_bytes(*b"roll");
    const COPY: u32 = u32::from_le_bytes(*b"copy");
    const WITH: u32 = u32::from_le_bytes(*b"with");
    !matches!(word, SELECT | INSERT | UPDATE | DELETE | BEGIN | COMMIT | END | ROLLBACK | COPY | WITH)
}

#[cold]
fn look_closer(text: &[u8]) -> Markers {
    let text = trim_end(text);
    if let Some(resets) = resets::only_resets(text) {
        return resets;
    }
    let mut found = Markers::NONE;
    for (word, mark) in WORDS {
        let mut from = 0;
        let mut times = 0;
        while let Some(at) = find_word(text, word, from) {
            from = at + word.len();
            times += 1;
            let text = settings_named::as_far_as_is_read(text, from, times);
            found |= match mark {
                Markers::ADVISORY if starts_with(text, from, b"_unlock") => Markers::ADVISORY_UNLOCK,
                Markers::SET_CONFIG if settings_named::is_local_call(text, from) => Markers::NONE,
                mark => mark,
            };
        }
    }
    for head in resets::statement_heads(text) {
        found |= settings_named::kind_of_set(head);
    }
    if settings_named::sets_in_block(text).next().is_some() {
        found |= Markers::SET_CONFIG;
    }
    found
}

/// Where a lower-case word stands next, in any case.
fn find_word(text: &[u8], word: &[u8], from: usize) -> Option<usize> {
    let &first = word.first()?;
    let end = text.len().checked_sub(word.len())?;
    (from..=end).find(|&at| text[at] | 0x20 == first | 0x20 && starts_with(text, at, word))
}

/// True if a lower-case word stands there, in any case.
fn starts_with(text: &[u8], at: usize, word: &[u8]) -> bool {
    text.get(at..at + word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
}
