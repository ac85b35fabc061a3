use super::*;

#[test]
fn constants_and_comments_are_not_shown() {
    let sql =
        "ALTER ROLE a PASSWORD 'secret' /* secret */;\n select $x$secret$x$, 4711, E'sec\\'ret', \"name\"";
    assert_eq!(shown(sql), "ALTER ROLE a PASSWORD ? ; select ?, ?, ?, \"name\"");
}

#[test]
fn a_text_that_was_cut_in_a_constant_shows_none_of_it() {
    assert_eq!(shown("select 'secr"), "select ?");
    assert_eq!(shown("do $$ secr"), "do ?");
}

#[test]
fn a_long_text_is_cut_at_the_bound() {
    let long = shown(&"é".repeat(500));
    assert_eq!(long.chars().count(), MAX_SHOWN_CHARACTERS + 1);
    assert!(long.ends_with('…'));
    assert_eq!(shown("a\u{7}b\nc"), "a b c");
}
