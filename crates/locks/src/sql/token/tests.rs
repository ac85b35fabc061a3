use super::*;
use proptest::prelude::*;

fn kinds(sql: &str) -> Vec<(Kind, &str)> {
    tokens(sql).filter(|token| token.kind != Kind::Space).map(|token| (token.kind, token.text)).collect()
}

#[test]
fn quotes_of_every_form_are_one_token() {
    for constant in [
        "'it''s; here'",
        "E'a\\'b;'",
        "e'\\\\'",
        "U&'d\\0061;'",
        "B'01'",
        "x'ff'",
        "N'n;'",
        "$$ ; ' $$",
        "$body$ $$ ; $other$ $body$",
    ] {
        assert_eq!(kinds(constant), [(Kind::Constant, constant)]);
    }
    assert_eq!(kinds("\"a\"\"b;\""), [(Kind::Identifier, "\"a\"\"b;\"")]);
    assert_eq!(kinds("'\\'").len(), 1, "a backslash is none but in E''");
}

#[test]
fn comments_nest_and_dollars_in_names_and_parameters_open_nothing() {
    assert_eq!(kinds("/* a /* b */ ; */"), [(Kind::Comment, "/* a /* b */ ; */")]);
    assert_eq!(kinds("-- a;\nb"), [(Kind::Comment, "-- a;"), (Kind::Word, "b")]);
    assert_eq!(kinds("a$b$"), [(Kind::Word, "a$b$")]);
    assert_eq!(kinds("$1;")[2], (Kind::Semicolon, ";"));
}

#[test]
fn what_is_never_closed_says_so() {
    for open in ["'a", "\"a", "$x$ a $y$", "/* a /* b */", "E'a\\'"] {
        assert!(tokens(open).any(|token| !token.is_closed), "{open}");
    }
}

proptest! {
    #[test]
    fn tokens_together_are_the_text(sql in "[a-eE;'\"$\\\\/*\\- \n1é]{0,60}") {
        let together: String = tokens(&sql).map(|token| token.text).collect();
        prop_assert_eq!(together, sql);
    }
}
