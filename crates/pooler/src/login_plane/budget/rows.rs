//! From rows to a look. Every row that counts has a kind and three numbers; others answer statements whose effect is all
//! that is wanted of them.

use budget::{Chunk, Look, Other, ServerLimits};

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub kind: String,
    pub values: [i64; 3],
}

/// A row of that shape; none for any other.
pub(super) fn numbers(row: &[Option<String>]) -> Option<Row> {
    let [Some(kind), Some(a), Some(b), Some(c)] = row else { return None };
    Some(Row { kind: kind.clone(), values: [a.parse().ok()?, b.parse().ok()?, c.parse().ok()?] })
}

/// What the rows say. None if the server's limits or our own control connection are missing: then it is no look at all.
pub(super) fn look_of(rows: &[Row]) -> Option<Look> {
    let mut look = Look::default();
    let mut is_whole = false;
    for Row { kind, values: [a, b, c] } in rows {
        match kind.as_str() {
            "c" => look.mine.push(Chunk::from_key(*a)?),
            "o" => {
                look.others.push(Other { places: count(*a), servers: count(*b), is_starving: *c > 0 });
            }
            "u" => look.unowned.push(i32::try_from(*a).ok()?),
            "p" => look.present.push(i32::try_from(*a).ok()?),
            "n" => look.controls = count(*a),
            "l" => {
                look.limits = ServerLimits { connections: count(*a), reserved: count(*b) };
                is_whole = true;
            }
            _ => {}
        }
    }
    (is_whole && look.controls > 0).then_some(look)
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(values: &[Option<&str>]) -> Vec<Option<String>> {
        values.iter().map(|value| value.map(str::to_owned)).collect()
    }

    fn row(kind: &str, values: [i64; 3]) -> Row {
        Row { kind: kind.to_owned(), values }
    }

    #[test]
    fn a_row_is_a_kind_and_three_numbers_and_nothing_else() {
        let good = body(&[Some("o"), Some("8"), Some("-3"), Some("1")]);
        assert_eq!(numbers(&good), Some(row("o", [8, -3, 1])));
        assert_eq!(numbers(&body(&[Some("17")])), None, "of a statement whose effect is wanted");
        assert_eq!(numbers(&body(&[Some("o"), Some("8"), None, Some("1")])), None);
        assert_eq!(numbers(&body(&[Some("o"), Some("eight"), Some("3"), Some("1")])), None);
    }

    #[test]
    fn without_the_servers_limits_or_our_own_connection_it_is_no_look() {
        let limits = row("l", [100, 3, 0]);
        assert_eq!(look_of(&[row("n", [1, 0, 0])]), None);
        assert_eq!(look_of(std::slice::from_ref(&limits)), None);
        let chunk = Chunk::new(7, 4);
        let rows = [
            row("c", [chunk.key().into(), 0, 0]),
            row("o", [8, 3, 1]),
            row("u", [77, 0, 0]),
            row("p", [78, 0, 0]),
            row("n", [2, 0, 0]),
            limits,
        ];
        let look = look_of(&rows).unwrap();
        assert_eq!((look.mine, look.unowned, look.present), (vec![chunk], vec![77], vec![78]));
        assert_eq!(look.others, [Other { places: 8, servers: 3, is_starving: true }]);
        assert_eq!((look.controls, look.limits.usable()), (2, 97));
    }
}
