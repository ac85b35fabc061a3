use super::*;
use crate::diagnostic::to_json;
use proptest::prelude::*;

/// Pieces that configuration files are made of, and some that break them.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "[databases]",
        "[pgbouncer]",
        "[users]",
        "[pooler]",
        "[peers]",
        "[databases.a]",
        "[",
        "]",
        "=",
        " = ",
        "\n",
        "\n",
        "\n",
        "\r\n",
        " ",
        "\t",
        "'",
        "''",
        "\"",
        "\"\"",
        "\"\"\"",
        "'''",
        ";",
        "#",
        "{",
        "}",
        ",",
        "\\",
        "%include x",
        "%include main.ini",
        "%include main.toml",
        "host=h",
        "port=1",
        "password=",
        "password='a'",
        "pool_size=2",
        "pool_mode = transaction",
        "query_wait_timeout",
        "client_patience = 3",
        "listen_addr",
        "*",
        "max_client_conn",
        "auth_file = x",
        "é",
        "😀",
        "\u{0}",
        "0",
        "-1",
        "99999999999999999999",
        "1kB",
        "500ms",
        "true",
        "\u{feff}",
    ];
    prop_oneof![
        8 => proptest::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,12}",
        1 => proptest::sample::select(table::general().map(|setting| setting.name).collect::<Vec<_>>())
            .prop_map(str::to_owned),
    ]
}

fn soup() -> impl Strategy<Value = String> {
    proptest::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

/// Loads the bytes as either kind of file; every finding lies within its file and can be printed.
fn check(bytes: &[u8]) -> Result<String, TestCaseError> {
    let mut shown = String::new();
    for name in ["main.ini", "main.toml"] {
        let sources = Memory::new().with(name, bytes).with("x", bytes);
        let diagnostics = match parse(Path::new(name), &sources) {
            Ok(loaded) => loaded.notes,
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                errors
            }
        };
        let text = String::from_utf8_lossy(bytes);
        for place in diagnostics.iter().filter_map(|diagnostic| diagnostic.place.as_ref()) {
            prop_assert!(place.file() == Path::new(name) || place.file() == Path::new("x"));
            let line = text.split('\n').nth(place.line() - 1);
            prop_assert!(line.is_some(), "line {} of {:?}", place.line(), text);
            let columns = line.unwrap_or_default().chars().count() + 1;
            prop_assert!((1..=columns).contains(&place.column()), "column {} of {}", place.column(), columns);
        }
        shown.push_str(&to_text(&diagnostics));
        shown.push_str(&to_json(&diagnostics));
    }
    Ok(shown)
}

fn without_files() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(without_files())]

    #[test]
    fn any_bytes_are_loaded_or_refused_within_the_file(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn any_mix_of_pieces_is_loaded_or_refused_within_the_file(text in soup()) {
        check(text.as_bytes())?;
    }

    #[test]
    fn password_is_never_shown(before in soup(), quote in "['\"]?", blank in "[ \t]?", after in soup()) {
        let text = format!("{before}\n[databases]\na = host=h password{blank}={blank}{quote}XYZZY{after}");
        let shown = check(text.as_bytes())?;
        prop_assert!(!shown.contains("XYZZY"), "{text:?} shows {shown}");
    }

    #[test]
    fn what_loads_shows_values_that_load_again(size in 1usize..1000, wait_ms in 1u64..100_000, on in any::<bool>()) {
        let lines = format!("default_pool_size = {size}\nquery_wait_timeout = {wait_ms}ms\nlog_stats = {on}");
        let first = parse_ini(&general(&lines)).unwrap().config;
        let shown: String = show_config(&first)
            .into_iter()
            .filter(|row| !["conffile", "listen_addr", "auth_file"].contains(&row.key))
            .map(|row| format!("{} = {}\n", row.key, row.value))
            .filter(|line| !line.starts_with("client_patience"))
            .collect();
        let second = parse_ini(&general(&shown)).unwrap().config;
        prop_assert_eq!(format!("{:?}", first), format!("{:?}", second));
    }
}
