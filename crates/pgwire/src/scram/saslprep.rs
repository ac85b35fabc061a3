//! Preparing a password: SASLprep (RFC 4013) as PostgreSQL does it.
//!
//! PostgreSQL looks for forbidden characters before it normalises, where the RFC looks after it. A verifier
//! fits only what was prepared in the same way, so its order is kept here.

use std::borrow::Cow;

use stringprep::tables;
use unicode_normalization::UnicodeNormalization;

/// The password as it enters the computation. The bytes are taken as they are where SASLprep does not apply
/// (not UTF-8), forbids (control characters, unassigned code points) or leaves nothing over.
#[must_use]
pub fn prepare(password: &[u8]) -> Cow<'_, [u8]> {
    // ASCII is never changed: what of it is forbidden is taken as it is too.
    if password.is_ascii() {
        return Cow::Borrowed(password);
    }
    match std::str::from_utf8(password).ok().and_then(prepare_text) {
        Some(prepared) => Cow::Owned(prepared.into_bytes()),
        None => Cow::Borrowed(password),
    }
}

fn prepare_text(text: &str) -> Option<String> {
    let mapped: String = text
        .chars()
        .map(|c| if tables::non_ascii_space_character(c) { ' ' } else { c })
        .filter(|c| !tables::commonly_mapped_to_nothing(*c))
        .collect();
    let allowed = !mapped.is_empty() && !mapped.contains(is_forbidden) && direction_is_clear(&mapped);
    allowed.then(|| mapped.nfkc().collect())
}

/// Tables C.2 to C.9 and A.1 of RFC 3454.
fn is_forbidden(c: char) -> bool {
    tables::ascii_control_character(c)
        || tables::non_ascii_control_character(c)
        || tables::private_use(c)
        || tables::non_character_code_point(c)
        || tables::surrogate_code(c)
        || tables::inappropriate_for_plain_text(c)
        || tables::inappropriate_for_canonical_representation(c)
        || tables::change_display_properties_or_deprecated(c)
        || tables::tagging_character(c)
        || tables::unassigned_code_point(c)
}

/// Section 6 of RFC 3454: text written from right to left begins and ends so, and holds no other.
fn direction_is_clear(text: &str) -> bool {
    !text.contains(tables::bidi_r_or_al)
        || (!text.contains(tables::bidi_l)
            && text.starts_with(tables::bidi_r_or_al)
            && text.ends_with(tables::bidi_r_or_al))
}
