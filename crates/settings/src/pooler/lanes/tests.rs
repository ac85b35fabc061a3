use super::*;
use crate::diagnostic::to_text;
use crate::pooler::{parse_ini, parse_toml};

const GENERAL: &str =
    "[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = any\n[databases]\ndb = host=h user=u\n";

fn ini(lanes: &str) -> Result<Vec<Lane>, Vec<Diagnostic>> {
    parse_ini(&format!("{GENERAL}[lanes]\n{lanes}")).map(|loaded| loaded.config.lanes)
}

/// Line and column, and what is wrong.
fn wrong(lanes: &str) -> String {
    to_text(&ini(lanes).unwrap_err())
}

#[test]
fn lanes_of_an_ini_file_and_of_toml_are_the_same() {
    let of_ini = ini(
        "web = application_name='web*,api*' weight=8 share_percent=50\nnight = user=batch database='shop'\n",
    )
    .unwrap();
    let of_toml = parse_toml(
        "[pooler]\nlisten_addr = '127.0.0.1'\nauth_type = 'any'\n[databases.db]\nhost = 'h'\nuser = 'u'\n\
         [lanes.web]\napplication_name = ['web*', 'api*']\nweight = 8\nshare_percent = 50\n\
         [lanes.night]\nuser = 'batch'\ndatabase = 'shop'\n",
    )
    .unwrap()
    .config
    .lanes;
    assert_eq!(of_ini, of_toml);
    let names: Vec<_> = of_ini.iter().map(|lane| lane.name.as_str()).collect();
    assert_eq!(names, [PLAIN_LANE, "web", "night"]);
    assert_eq!((of_ini[1].weight, of_ini[1].share_percent), (8, 50));
    assert_eq!((of_ini[2].weight, of_ini[2].share_percent), (1, 0), "without a word: one turn, no guarantee");
}

#[test]
fn without_the_section_there_are_no_lanes() {
    assert!(parse_ini(GENERAL).unwrap().config.lanes.is_empty());
}

#[test]
fn the_first_lane_whose_patterns_are_met_takes_the_client() {
    let lanes =
        ini("web = application_name=web*\nbatch = user=batch database=*_dw\nrest = user=b*\n").unwrap();
    let of = |application, user, database| {
        lanes.iter().skip(1).find(|lane| lane.matches(application, user, database)).map(|lane| &*lane.name)
    };
    assert_eq!(of("web-1", "batch", "a_dw"), Some("web"));
    assert_eq!(of("cron", "batch", "a_dw"), Some("batch"));
    assert_eq!(of("cron", "batch", "shop"), Some("rest"), "all kinds of patterns must be met");
    assert_eq!(of("cron", "ann", "shop"), None);
}

#[test]
fn a_star_is_any_text_and_case_matters() {
    for (pattern, text, is) in [
        ("*", "", true),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*b*c", "axxbyybzzc", true),
        ("a*b*c", "axxc", false),
        ("**", "x", true),
        ("ab", "abc", false),
        ("abc", "ab", false),
        ("A*", "abc", false),
        ("*ab", "aab", true),
        ("ü*", "über", true),
    ] {
        assert_eq!(is_like(pattern, text), is, "{pattern} {text}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let unknown = wrong("web = aplication_name=web*\n");
    assert!(unknown.contains(":7:7") && unknown.contains("did you mean `application_name`?"), "{unknown}");
    let weight = wrong("web = weight=0\n");
    assert!(weight.contains(":7:14") && weight.contains("between 1 and 1000"), "{weight}");
    let share = wrong("web = share_percent=91\n");
    assert!(share.contains("between 0 and 90"), "{share}");
    let sum = wrong("a = share_percent=50\nb = share_percent=41\n");
    assert!(sum.contains(":8:19") && sum.contains("91 % guaranteed"), "{sum}");
    let twice = wrong("a = user=x\na = user=y\n");
    assert!(twice.contains(":8:1") && twice.contains("written twice"), "{twice}");
    let plain = wrong("default = user=x\n");
    assert!(plain.contains(":7:11") && plain.contains("no patterns"), "{plain}");
    let long = wrong(&format!("{} = user=x\n", "n".repeat(MAX_LANE_NAME_BYTES + 1)));
    assert!(long.contains("at most 63 bytes"), "{long}");
}

#[test]
fn numbers_of_lanes_and_patterns_are_bounded() {
    use std::fmt::Write as _;
    let lanes = |count: usize| {
        (0..count).fold(String::new(), |mut text, lane| {
            let _ = writeln!(text, "l{lane} = user=u{lane}");
            text
        })
    };
    assert_eq!(ini(&lanes(MAX_LANES - 1)).unwrap().len(), MAX_LANES);
    assert!(wrong(&lanes(MAX_LANES)).contains("at most 16 lanes"));
    let patterns = |count| format!("l = user='{}'\n", vec!["u"; count].join(","));
    assert_eq!(ini(&patterns(MAX_PATTERNS)).unwrap()[1].user.len(), MAX_PATTERNS);
    assert!(wrong(&patterns(MAX_PATTERNS + 1)).contains("at most 64 patterns"));
    let long = |bytes| format!("l = user={}\n", "u".repeat(bytes));
    assert!(ini(&long(MAX_PATTERN_BYTES)).is_ok());
    assert!(wrong(&long(MAX_PATTERN_BYTES + 1)).contains("at most 256 bytes"));
}

#[test]
fn a_lane_behind_one_that_takes_everybody_is_warned_of() {
    let text = format!("{GENERAL}[lanes]\nall = weight=2\nweb = application_name=web\n");
    let notes = parse_ini(&text).unwrap().notes;
    assert!(notes.iter().any(|note| note.message.contains("never reached")), "{notes:?}");
}
