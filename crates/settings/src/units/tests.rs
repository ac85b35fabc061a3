use super::*;

#[test]
fn plain_numbers_are_seconds_and_units_are_understood() {
    for (text, us) in [
        ("0", 0),
        ("4", 4_000_000),
        ("0.5", 500_000),
        (".25", 250_000),
        ("3.", 3_000_000),
        ("250us", 250),
        ("500ms", 500_000),
        ("1.5 s", 1_500_000),
        ("2min", 120_000_000),
        ("1h", 3_600_000_000),
        ("1d", 86_400_000_000),
        ("0.0000019", 1),
    ] {
        assert_eq!(duration(text), Ok(Duration::from_micros(us)), "{text}");
    }
}

#[test]
fn what_is_no_duration_is_refused() {
    for text in
        ["", "s", "-1", "1 week", "1e3", "1.2.3", ".", "4 S", "1000000001", "99999999999999999999", "٣"]
    {
        assert!(duration(text).is_err(), "{text}");
    }
    assert!(duration(&MAX_DURATION_S.to_string()).is_ok());
}

#[test]
fn sizes_take_units_of_1024() {
    for (text, size) in
        [("0", 0), ("4096", 4096), ("64kB", 65536), ("1 MB", 1 << 20), ("2gb", 2 << 30), ("1.5kB", 1536)]
    {
        assert_eq!(bytes(text), Ok(size), "{text}");
    }
    for text in ["", "kB", "-1", "1TB", "18446744073709551616", "99999999999GB"] {
        assert!(bytes(text).is_err(), "{text}");
    }
}

#[test]
fn whole_numbers_refuse_what_would_be_read_in_two_ways() {
    assert_eq!(integer("0"), Ok(0));
    assert_eq!(integer("18446744073709551615"), Ok(u64::MAX));
    assert!(integer("-5").is_err_and(|reason| reason.contains("negative")));
    assert!(integer("010").is_err_and(|reason| reason.contains("octal")));
    for text in ["", "1.0", "0x10", "1 000", "18446744073709551616"] {
        assert!(integer(text).is_err(), "{text}");
    }
}

#[test]
fn switches_take_all_usual_words() {
    for text in ["1", "yes", "on", "true", "TRUE"] {
        assert_eq!(boolean(text), Ok(true), "{text}");
    }
    for text in ["0", "no", "off", "False"] {
        assert_eq!(boolean(text), Ok(false), "{text}");
    }
    for text in ["", "2", "y", "enabled"] {
        assert!(boolean(text).is_err(), "{text}");
    }
}

#[test]
fn file_modes_are_octal_and_say_so() {
    assert_eq!(file_mode("0777"), Ok(0o777));
    assert_eq!(file_mode("0"), Ok(0));
    // PgBouncer would take this as decimal.
    for text in ["777", "01777", "0888", "", "rwx"] {
        assert!(file_mode(text).is_err(), "{text}");
    }
}

#[test]
fn durations_are_shown_as_seconds() {
    for (text, shown) in [("120", "120"), ("500ms", "0.5"), ("1us", "0.000001"), ("90min", "5400")] {
        assert_eq!(duration(text).map(show_duration).as_deref(), Ok(shown));
    }
}
