//! The names that stand in a statement, as they are written.

use locks::sql::{Kind, tokens};
use std::collections::HashSet;

/// Most names of one statement that are looked up.
pub(crate) const MAX_NAMES: usize = 64;

/// Every name that may be a table's, with its schema where one is written; key words are among them, and lead nowhere.
pub(crate) fn names(statement: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // A name, and whether a dot has come behind it.
    let mut open: Option<(String, bool)> = None;
    for token in tokens(statement) {
        match (token.kind, token.text) {
            (Kind::Space | Kind::Comment, _) => {}
            (Kind::Word | Kind::Identifier, text) => {
                let joined = match open.take() {
                    Some((schema, true)) => format!("{schema}.{text}"),
                    Some((name, false)) => {
                        names.push(name);
                        text.to_owned()
                    }
                    None => text.to_owned(),
                };
                open = Some((joined, false));
            }
            (Kind::Other, ".") => open = open.take().map(|(name, _)| (name, true)),
            _ => names.extend(open.take().map(|(name, _)| name)),
        }
    }
    names.extend(open.map(|(name, _)| name));
    // More than a schema and a name is no table of this database.
    names.retain(|name| name.matches('.').count() <= 1 && !name.ends_with('.'));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.truncate(MAX_NAMES);
    names
}

/// The index that a `CREATE INDEX CONCURRENTLY` names, if it does.
pub(crate) fn concurrent_index(statement: &str) -> Option<String> {
    let mut words = tokens(statement).filter(|token| !matches!(token.kind, Kind::Space | Kind::Comment));
    words.find(|token| token.text.eq_ignore_ascii_case("concurrently"))?;
    let mut rest = words.skip_while(|token| {
        token.kind == Kind::Word
            && ["if", "not", "exists"].contains(&token.text.to_ascii_lowercase().as_str())
    });
    let name = rest.next()?;
    let is_name = name.kind == Kind::Identifier || name.kind == Kind::Word;
    (is_name && !name.text.eq_ignore_ascii_case("on")).then(|| name.text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_with_their_schema_and_constants_are_none() {
        let found =
            names("alter table only s.t add column \"C\" text default 'x.y', add z int references other(id)");
        for name in ["s.t", "\"C\"", "other", "id"] {
            assert!(found.contains(&name.to_owned()), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|name| name == "x.y" || name == "y"), "{found:?}");
        assert_eq!(names(&"a b c d e f g ".repeat(3)).len(), 7);
        let many: String = (0..200).map(|n| format!("n{n} ")).collect();
        assert_eq!(names(&many).len(), MAX_NAMES);
    }

    #[test]
    fn the_index_of_a_concurrent_build_is_known_if_it_has_a_name() {
        let name = concurrent_index;
        assert_eq!(name("create unique index concurrently i on t(a)").as_deref(), Some("i"));
        assert_eq!(
            name("create index CONCURRENTLY if not exists \"I x\" on t(a)").as_deref(),
            Some("\"I x\"")
        );
        assert_eq!(name("create index concurrently on t(a)"), None);
        assert_eq!(name("create index i on t(a)"), None);
    }
}
