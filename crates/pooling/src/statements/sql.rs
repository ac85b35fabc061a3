//! The few statements of SQL that concern prepared ones. No parser: what is not plainly one of them is none.

/// What a text drops.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Drops {
    /// All prepared statements: `DEALLOCATE ALL`, or any `DISCARD`.
    All,
    /// One: `DEALLOCATE name`. As the client calls it.
    One(Vec<u8>),
}

/// Reads a text of one statement.
pub(crate) fn drops(text: &[u8]) -> Option<Drops> {
    let text = text.trim_ascii_start();
    // Nearly every text is told by its first byte.
    if !matches!(text.first(), Some(b'd' | b'D')) {
        return None;
    }
    if after_word(text, b"discard").is_some() {
        return Some(Drops::All);
    }
    let rest = after_word(text, b"deallocate")?;
    let rest = after_word(rest, b"prepare").filter(|rest| !rest.is_empty()).unwrap_or(rest);
    let (name, rest) = identifier(rest)?;
    let rest = rest.trim_ascii();
    if !rest.is_empty() && rest != b";" {
        return None;
    }
    Some(match name {
        Identifier::Plain(name) if name == b"all" => Drops::All,
        Identifier::Plain(name) | Identifier::Quoted(name) => Drops::One(name),
    })
}

enum Identifier {
    Plain(Vec<u8>),
    Quoted(Vec<u8>),
}

/// What follows a keyword, without the space in between.
fn after_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (head, rest) = text.split_at_checked(word.len())?;
    let ends = rest.first().is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b';'));
    (head.eq_ignore_ascii_case(word) && ends).then(|| rest.trim_ascii_start())
}

fn identifier(text: &[u8]) -> Option<(Identifier, &[u8])> {
    if let Some(mut rest) = text.strip_prefix(b"\"") {
        let mut name = Vec::new();
        loop {
            let end = rest.iter().position(|&byte| byte == b'"')?;
            name.extend_from_slice(rest.get(..end)?);
            rest = rest.get(end + 1..)?;
            match rest.strip_prefix(b"\"") {
                Some(more) => {
                    name.push(b'"');
                    rest = more;
                }
                None => return Some((Identifier::Quoted(name), rest)),
            }
        }
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii();
    let end = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
    Some((Identifier::Plain(name.to_ascii_lowercase()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str) -> Option<Drops> {
        Some(Drops::One(name.as_bytes().to_vec()))
    }

    #[test]
    fn deallocate_is_read_as_postgresql_reads_it() {
        for (text, expected) in [
            ("DEALLOCATE _pg3_0", one("_pg3_0")),
            ("  deallocate\n prepare Stmt_1 ; ", one("stmt_1")),
            ("DEALLOCATE\"Mixed \"\"Case\"", one("Mixed \"Case")),
            ("DEALLOCATE \"all\"", one("all")),
            ("DEALLOCATE ALL", Some(Drops::All)),
            ("DEALLOCATE PREPARE all;", Some(Drops::All)),
            ("deallocate prepare", one("prepare")),
            ("DISCARD ALL", Some(Drops::All)),
            ("discard plans", Some(Drops::All)),
            ("DEALLOCATE a; SELECT 1", None),
            ("DEALLOCATE \"a", None),
            ("DEALLOCATE", None),
            ("DEALLOCATED x", None),
            ("DELETE FROM t", None),
            ("", None),
        ] {
            assert_eq!(drops(text.as_bytes()), expected, "{text}");
        }
    }
}
