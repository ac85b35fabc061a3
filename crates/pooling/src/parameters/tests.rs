use super::*;

fn sql(change: Option<Change>) -> Option<(String, String)> {
    change.map(|change| (change.resets, change.sets))
}

fn sets(text: &str) -> Option<(String, String)> {
    Some((String::new(), text.to_owned()))
}

#[test]
fn equal_sets_are_one_and_differences_are_quoted() {
    let mut parameters = Parameters::new();
    let server = parameters.reported([("application_name", ""), ("timezone", "UTC"), ("IntervalStyle", "x")]);
    let same = parameters.reported([("IntervalStyle", "x"), ("TimeZone", "UTC"), ("application_name", "")]);
    assert!(Arc::ptr_eq(&server, &same));
    assert_eq!(parameters.difference(&server, &server, &same), None);
    let wishes = parameters.wished([("application_name", r"o'hara\"), ("intervalstyle", "iso_8601")]);
    let client = parameters.start(&server, &wishes);
    assert_eq!(
        sql(parameters.difference(&server, &server, &client)),
        sets(r#"SET "application_name"=E'o''hara\\';SET "IntervalStyle"='iso_8601';"#)
    );
}

#[test]
fn a_report_changes_one_set_and_leaves_the_others() {
    let mut parameters = Parameters::new();
    let before = parameters.reported([("client_encoding", "UTF8")]);
    let mut shared = before.clone();
    parameters.report(&mut shared, "client_encoding", "UTF8");
    assert!(Arc::ptr_eq(&shared, &before));
    parameters.report(&mut shared, "CLIENT_ENCODING", "LATIN1");
    let index = parameters.index_of("client_encoding").unwrap();
    assert_eq!(shared.value(index).map(AsRef::as_ref), Some("LATIN1"));
    assert_eq!(before.value(index).map(AsRef::as_ref), Some("UTF8"));
    parameters.report(&mut shared, "client_encoding", "UTF8");
    assert!(Arc::ptr_eq(&shared, &before));
}

#[test]
fn what_no_server_reports_is_set_for_one_client_and_reset_for_the_next() {
    let mut parameters = Parameters::new();
    let start = parameters.reported([("TimeZone", "UTC")]);
    let wishes = parameters.wished([("search_path", r#"a, "B'c""#), ("App.User", "7"), ("user", "x")]);
    let mut client = parameters.start(&start, &wishes);
    let mut server = start.clone();
    assert_eq!(
        sql(parameters.difference(&server, &start, &client)),
        sets(
            r#"SET "app"."user"='7';SELECT pg_catalog.set_config('search_path','a, "B''c"',false);SET "user"='x';"#
        )
    );
    parameters.agree(&mut server, &mut client, |name, _| panic!("told of {name}"));
    assert!(Arc::ptr_eq(&server, &client));
    let other = parameters.wished([("user", "y")]);
    let other = parameters.start(&start, &other);
    assert_eq!(
        sql(parameters.difference(&server, &start, &other)),
        Some((r#"RESET "app"."user";RESET "search_path";"#.to_owned(), r#"SET "user"='y';"#.to_owned()))
    );
    let mut plain = start.clone();
    assert!(parameters.difference(&server, &start, &plain).is_some());
    parameters.agree(&mut server, &mut plain, |name, _| panic!("told of {name}"));
    assert!(Arc::ptr_eq(&server, &start));
}

#[test]
fn a_client_is_told_what_cannot_be_set_and_how_the_server_spells_a_value() {
    let mut parameters = Parameters::new();
    let old = parameters.reported([("server_version", "15"), ("DateStyle", "ISO, MDY")]);
    let wishes = parameters.wished([("datestyle", "german")]);
    let mut client = parameters.start(&old, &wishes);
    let mut server = parameters.reported([("server_version", "18"), ("DateStyle", "ISO, MDY"), ("x", "1")]);
    let start = server.clone();
    assert_eq!(sql(parameters.difference(&server, &start, &client)), sets(r#"SET "DateStyle"='german';"#));
    parameters.report(&mut server, "DateStyle", "German, DMY");
    let mut told = Vec::new();
    parameters.agree(&mut server, &mut client, |name, value| told.push(format!("{name}={value}")));
    told.sort();
    assert_eq!(told, ["DateStyle=German, DMY", "server_version=18", "x=1"]);
    assert_eq!(parameters.difference(&server, &start, &client), None);
    // Only what cannot be set differs: nothing is asked of the server.
    let mut client = parameters.start(&old, &wishes);
    assert_eq!(
        parameters.difference(&server, &start, &client).map(|change| change.resets),
        Some(String::new())
    );
    parameters.agree(&mut server, &mut client, |_, _| ());
    assert!(Arc::ptr_eq(&server, &client));
}

#[test]
fn a_parameter_that_a_newer_server_reports_is_still_its_clients() {
    let mut parameters = Parameters::new();
    let old = parameters.reported([("TimeZone", "UTC")]);
    let wishes = parameters.wished([("search_path", "a")]);
    let (mut client, plain) = (parameters.start(&old, &wishes), old);
    let start = parameters.reported([("TimeZone", "UTC"), ("search_path", "public")]);
    let mut server = start.clone();
    assert!(parameters.difference(&server, &start, &client).is_some());
    parameters.report(&mut server, "search_path", "a");
    parameters.agree(&mut server, &mut client, |_, _| ());
    assert_eq!(server.further().count(), 0);
    // The next one knows nothing of it, and gets the server's own.
    assert_eq!(
        sql(parameters.difference(&server, &start, &plain)),
        sets("SELECT pg_catalog.set_config('search_path','public',false);")
    );
}

#[test]
fn sets_and_names_are_bounded() {
    let mut parameters = Parameters::new();
    for number in 0..MAX_INTERNED + 10 {
        parameters.wished([("application_name", number.to_string().as_str())]);
    }
    assert!(parameters.sets.len() <= MAX_INTERNED);
    let kept: Vec<_> = (0..MAX_INTERNED + 10)
        .map(|number| parameters.wished([("application_name", format!("k{number}").as_str())]))
        .collect();
    assert!(parameters.sets.len() <= MAX_INTERNED);
    assert_eq!(kept[MAX_INTERNED + 9].value(APPLICATION_NAME).map(AsRef::as_ref), Some("k4105"));

    let names: Vec<String> = (0..MAX_REPORTED + 10).map(|number| format!("n{number}")).collect();
    let set = parameters.reported(names.iter().map(|name| (name.as_str(), "1")));
    assert_eq!(parameters.names.len(), MAX_REPORTED);
    assert!(set.values().count() < MAX_REPORTED);
    let set = parameters.wished(names.iter().map(|name| (name.as_str(), "1")));
    assert_eq!(set.further().count(), MAX_FURTHER);
    let long = "x".repeat(MAX_VALUE_BYTES + 1);
    let set = parameters.reported([("TimeZone", long.as_str()), ("no name", "1")]);
    assert_eq!(set.values().count(), 0);
}
