use super::*;

/// One refusal in [pgbouncer]: the line written, its column, the code, and parts of message and help.
type Case = (&'static str, usize, &'static str, &'static str, &'static str);

#[test]
fn bad_settings_are_refused_with_place_reason_and_help() {
    let cases: &[Case] = &[
        (
            "max_client_con = 5",
            1,
            "unknown-setting",
            "no setting `max_client_con` in [pgbouncer]",
            "`max_client_conn`",
        ),
        ("Default_Pool_Size = 5", 1, "unknown-setting", "`Default_Pool_Size`", "`default_pool_size`"),
        ("pool_size = 5", 1, "unknown-setting", "`pool_size`", "setting of [databases]"),
        ("xyzzy = 5", 1, "unknown-setting", "`xyzzy`", ""),
        (
            "max_client_conn = many",
            19,
            "bad-value",
            "`many` is no value of `max_client_conn`: a whole number",
            "",
        ),
        ("max_client_conn = 0", 19, "bad-value", "between 1 and 10000000", ""),
        ("max_client_conn = -1", 19, "bad-value", "must not be negative", ""),
        ("max_client_conn = 5 ; five", 19, "bad-value", "`5 ; five`", "a comment needs a line of its own"),
        ("query_timeout = 5 parsecs", 17, "bad-value", "a number of seconds", ""),
        ("query_timeout =", 16, "bad-value", "a number such as", ""),
        ("cancel_wait_timeout = 0", 23, "bad-value", "at least 0.001 s", ""),
        ("waiter_buffer = 4095", 17, "bad-value", "between 4096 and 1048576", ""),
        ("waiter_buffer = 1048577", 17, "bad-value", "between 4096 and 1048576", ""),
        ("server_login_concurrency = 0", 28, "bad-value", "between 1 and 10000", ""),
        ("listen_port = 65536", 15, "bad-value", "between 0 and 65535", ""),
        ("log_stats = maybe", 13, "bad-value", "1 or 0", ""),
        ("unix_socket_mode = 777", 20, "bad-value", "octal", ""),
        ("auth_type = scram", 13, "bad-value", "one of any, trust, plain, md5, scram-sha-256", ""),
        ("log_format = jsno", 14, "bad-value", "did you mean `json`?", ""),
        ("metrics_listen = 9127", 18, "bad-value", "an address and a port", ""),
        ("listen_addr = 1.2.3.4.5", 15, "bad-value", "`1.2.3.4.5` of `listen_addr`", ""),
        ("unix_socket_dir =", 18, "nowhere-to-listen", "nothing to listen on", "`listen_addr`"),
        ("auth_type = hba", 13, "not-built", "`hba` of `auth_type` is not built yet", "scram-sha-256"),
        ("peer_id = 5", 1, "not-built", "`peer_id` is not built yet", "`peer_id = 0`"),
        ("server_tls_sslmode = verify", 22, "bad-value", "one of disable, allow, prefer", ""),
        ("server_tls_sslmode = verify-ca", 22, "tls-file-missing", "needs `server_tls_ca_file`", ""),
        ("server_tls_cert_file = c.pem", 24, "tls-file-missing", "needs `server_tls_key_file`", ""),
        ("server_tls_ciphers = RC4", 22, "bad-value", "leaves no suite", ""),
        ("client_tls_protocols = tlsv1.1", 24, "bad-value", "older versions are not safe", ""),
        ("client_tls13_ciphers = TLS_NULL", 24, "bad-value", "TLS_AES_256_GCM_SHA384", ""),
        ("client_tls_ecdhcurve = secp521r1", 24, "bad-value", "none of X25519, prime256v1", ""),
        ("auth_query = select 1", 1, "not-built", "`auth_query`", "leave it out"),
        ("conffile = x.ini", 1, "not-built", "`conffile`", "leave it out"),
        ("server_check_query =", 21, "not-built", "`server_check_query`", "`<empty>`"),
        ("unix_socket_dir = @abstract", 19, "not-built", "`@abstract`", ""),
        ("auth_file = gone.txt", 13, "unreadable", "`gone.txt`", ""),
        (
            "min_pool_size = 21",
            17,
            "minimum-above-maximum",
            "`min_pool_size` is 21, above `default_pool_size`, which is 20",
            "",
        ),
    ];
    for (written, column, code, message, help) in cases {
        let (line, at_column, at_code, at_message, at_help) = only_error(parse_ini(&general(written)));
        assert_eq!((line, at_column, at_code), (3, *column, *code), "{written}: {at_message}");
        assert!(at_message.contains(message), "{written}: {at_message}");
        assert!(at_help.contains(help), "{written}: {at_help}");
    }
}

#[test]
fn a_budget_is_refused_only_if_what_is_declared_cannot_fit() {
    let file = |budget: &str, minimum: u32| {
        format!(
            "[databases]\na = host=h user=u min_pool_size={minimum} pool_size=20\nb = host=h user=u min_pool_size=2\n\
             other = host=i user=u min_pool_size=9\n{}",
            general(&format!("budget_user = guard\nbudget_reserved = 3\n{budget}"))
        )
    };
    let notes = |text: &str| -> Vec<&'static str> {
        parse_ini(text)
            .unwrap()
            .notes
            .iter()
            .map(|note| note.code)
            .filter(|code| code.starts_with("budget"))
            .collect()
    };
    // Two servers; the greater sum of minima is 11.
    assert_eq!(notes(&file("server_budget = 14", 9)), ["budget-overcommitted"]);
    let (.., code, message, _) = only_error(parse_ini(&file("server_budget = 13", 9)));
    assert_eq!(code, "budget-too-small");
    assert!(message.contains("11 of `min_pool_size` and 3 of `budget_reserved`"), "{message}");
    assert_eq!(notes(&file("server_budget = 43", 9)), [""; 0]);
    assert_eq!(notes(&file("server_budget = auto", 9)), [""; 0], "the server is asked later");
    for (text, column) in
        [("server_budget = some", 17), ("budget_chunk = 0", 16), ("budget_settle = 0.05", 17)]
    {
        let (line, at_column, code, ..) = only_error(parse_ini(&general(text)));
        assert_eq!((line, at_column, code), (3, column, "bad-value"), "{text}");
    }
    let (.., code, _, help) = only_error(parse_ini(&general("server_budget = 50")));
    assert_eq!(code, "budget-user");
    assert!(help.contains("`budget_user`"), "{help}");
}

#[test]
fn pool_modes_that_do_not_exist_are_refused() {
    let text = format!("[users]\na = pool_mode=nonsense\n{}", general(""));
    let (line, column, code, ..) = only_error(parse_ini(&text));
    assert_eq!((line, column, code), (2, 15, "bad-value"));
}

#[test]
fn an_ini_file_without_pool_mode_means_session_as_in_pgbouncer() {
    let mode = |text: &str| parse_ini(text).unwrap().config.general.pool_mode;
    assert_eq!(mode("[pgbouncer]\nlisten_addr = 127.0.0.1\n"), PoolMode::Session);
    assert_eq!(mode("[pgbouncer]\nlisten_addr = 127.0.0.1\npool_mode = Statement\n"), PoolMode::Statement);
    assert_eq!(
        parse_toml("[pooler]\nlisten_addr = \"127.0.0.1\"\n").unwrap().config.general.pool_mode,
        PoolMode::Transaction
    );
}

#[test]
fn bad_lines_of_databases_and_users_are_refused() {
    for (written, column, code, part) in [
        ("a = host=h prt=1", 12, "unknown-setting", "no setting `prt` in [databases]"),
        ("a = host=h port=0", 17, "bad-value", "between 1 and 65535"),
        ("a = host=h port=x", 17, "bad-value", "whole number"),
        ("a = host=h,i", 10, "not-built", "`h,i` of `host`"),
        ("a = host=h pool_size=0", 22, "bad-value", "between 1"),
        ("a = host=h auth_user=x", 12, "not-built", "`auth_user`"),
        ("a = host=h min_pool_size=30", 26, "minimum-above-maximum", "above `pool_size`, which is 20"),
        (
            "a = host=h min_pool_size=3 max_db_connections=2",
            26,
            "minimum-above-maximum",
            "`max_db_connections`",
        ),
        ("pgbouncer = host=h", 1, "bad-value", "the console's"),
        ("a = host=h query_wait_timout=1", 12, "unknown-setting", "`query_wait_timout`"),
    ] {
        let (line, at_column, at_code, message, _) =
            only_error(parse_ini(&format!("[databases]\n{written}\n{}", general(""))));
        assert_eq!((line, at_column, at_code), (2, column, code), "{written}: {message}");
        assert!(message.contains(part), "{written}: {message}");
    }
    let (line, column, _, message, help) =
        only_error(parse_ini(&format!("[users]\njoe = port=1\n{}", general(""))));
    assert_eq!((line, column), (2, 7));
    assert!(message.contains("in [users]") && help.contains("[databases]"), "{message} {help}");
    let (line, column, code, ..) = only_error(parse_ini(&format!("[peers]\n1 = host=h\n{}", general(""))));
    assert_eq!((line, column, code), (2, 1, "not-built"));
}

#[test]
fn wait_that_outlasts_the_callers_patience_is_refused_wherever_it_is_written() {
    for (text, line, column, part) in [
        (general("client_patience = 5\nquery_wait_timeout = 5"), 4, 22, "`query_wait_timeout` is 5 s"),
        (general("query_wait_timeout = 6\nclient_patience = 5"), 3, 22, "callers wait only 5 s"),
        (general("client_patience = 5\nquery_wait_timeout = 0"), 4, 22, "for ever (0)"),
        (general("client_patience = 5"), 3, 19, "the default of `query_wait_timeout` is 120 s"),
        (
            general(
                "client_patience = 5\nquery_wait_timeout = 4\n[databases]\na = host=h query_wait_timeout=7",
            ),
            6,
            31,
            "is 7 s",
        ),
        (
            general("client_patience = 500ms\nquery_wait_timeout = 0.4\n[users]\na = query_wait_timeout=0.5"),
            6,
            24,
            "is 0.5 s, but callers wait only 0.5 s",
        ),
    ] {
        let (at_line, at_column, code, message, help) = only_error(parse_ini(&text));
        assert_eq!((at_line, at_column, code), (line, column, "patience"), "{message}");
        assert!(message.contains(part), "{message}");
        assert!(help.contains("below"), "{help}");
    }
    assert!(parse_ini(&general("client_patience = 5\nquery_wait_timeout = 4.999")).is_ok());
    assert!(parse_ini(&general("client_patience = 0\nquery_wait_timeout = 9")).is_ok(), "0 = not declared");
    let (line, ..) = only_error(parse_toml("[pooler]\nclient_patience = 4\n"));
    assert_eq!(line, 2, "the default of 4 s");
}

#[test]
fn toml_is_refused_in_its_places_too() {
    for (written, line, column, code) in [
        ("[pooler]\nmax_client_con = 5\n", 2, 1, "unknown-setting"),
        ("[pooler]\nmax_client_conn = \"many\"\n", 2, 19, "bad-value"),
        ("[pooler]\nmax_client_conn = [5]\n", 2, 19, "bad-value"),
        ("[pooler]\npool_mode = \"sesion\"\n", 2, 13, "bad-value"),
        ("[databases.a]\nhost = \"h\"\nport = 70000\n", 3, 8, "bad-value"),
        ("[databases]\na = \"host=h prt=1\"\n", 2, 13, "unknown-setting"),
        ("[databases.\"\"]\nhost = \"h\"\n", 1, 12, "bad-value"),
        ("[users.\"\"]\npool_size = 1\n", 1, 8, "bad-value"),
    ] {
        let (at_line, at_column, at_code, message, _) = only_error(parse_toml(written));
        assert_eq!((at_line, at_column, at_code), (line, column, code), "{written}: {message}");
    }
}

#[test]
fn all_errors_are_reported_together() {
    let text = "[databases]\na = host=h prt=1\nb = host\n[pgbouncer]\nmax_client_con = 1\npool_mode = sesion\nclient_patience = 3\n";
    let errors = parse_ini(text).unwrap_err();
    let lines: std::collections::BTreeSet<_> = described(&errors).iter().map(|error| error.0).collect();
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), [2, 3, 5, 6, 7]);
}

#[test]
fn secrets_are_never_cited() {
    let verifier = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    let texts = [
        format!("[databases]\na = host=h password={verifier}\n"),
        "[databases]\na = host=h password='SCRAM-hush' prt=1\n".to_owned(),
        "[databases]\na = host=h password=SCRAM hush\n".to_owned(),
        "[databases]\na = host=h pasword=SCRAM\n[pgbouncer]\npassword = SCRAM\n".to_owned(),
    ];
    for text in texts {
        let errors = parse_ini(&text).unwrap_err();
        let shown = to_text(&errors).replace("a SCRAM verifier", "");
        assert!(!shown.replace("pasword=SCRAM", "").contains("SCRAM"), "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
    }
    for text in [
        "[databases.a]\npassword = hush\n",
        "[databases.a]\npassword = 'hush\n",
        "[databases.a]\npassword = \"\"\"\nhush\n",
    ] {
        let shown = to_text(&parse_toml(text).unwrap_err());
        assert!(!shown.contains("hush"), "{shown}");
    }
}
