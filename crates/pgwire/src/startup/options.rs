//! The `options` parameter of a start-up packet: switches of the server's command line.
//!
//! Split as PostgreSQL does it (`pg_split_opts`): spaces part the words, a backslash keeps the next character. Of the
//! switches only `-c name=value`, `-cname=value` and `--name=value` are parameters of the session.

/// Why `options` cannot be taken. `Display` is PgBouncer's text, for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Another switch, or none.
    #[error("unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed")]
    Switch,
}

/// The parameters that `options` sets, in order, with `-` in names read as `_`.
///
/// # Errors
/// Something else stands there. The same text fails again.
pub fn options(text: &str) -> Result<Vec<(String, String)>, OptionsError> {
    let mut words = split(text).into_iter();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        let setting = if let Some(rest) = word.strip_prefix("--") {
            rest.to_owned()
        } else if word == "-c" {
            words.next().ok_or(OptionsError::Switch)?
        } else if let Some(rest) = word.strip_prefix("-c") {
            rest.to_owned()
        } else {
            return Err(OptionsError::Switch);
        };
        let (name, value) = setting.split_once('=').ok_or(OptionsError::Switch)?;
        found.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(found)
}

fn split(text: &str) -> Vec<String> {
    // What C's `isspace` says.
    let is_space = |character: char| matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c');
    let mut words = Vec::new();
    let mut rest = text.chars().peekable();
    loop {
        while rest.next_if(|&character| is_space(character)).is_some() {}
        if rest.peek().is_none() {
            return words;
        }
        let mut word = String::new();
        while let Some(character) = rest.next_if(|&character| !is_space(character)) {
            // A backslash at the end stands for nothing.
            word.extend(if character == '\\' { rest.next() } else { Some(character) });
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, String)> {
        options(text).unwrap()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn both_forms_and_the_quoting_of_postgresql() {
        assert_eq!(of(""), []);
        assert_eq!(of(" \t\n"), []);
        assert_eq!(of("-c a=b"), [pair("a", "b")]);
        assert_eq!(of("-ca=b --c-d=e=f  -c\tg="), [pair("a", "b"), pair("c_d", "e=f"), pair("g", "")]);
        assert_eq!(
            of(r#"-c search_path=a,\"B\ c\" -c statement_timeout=5s"#),
            [pair("search_path", r#"a,"B c""#), pair("statement_timeout", "5s")]
        );
        assert_eq!(of(r"-c a=\\\ \'\"), [pair("a", r"\ '")]);
        assert_eq!(of(r"-c a=ü\ü"), [pair("a", "üü")]);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["-c", "-c a", "a=b", "-d 5", "-B 9", "--a", "-c a=b x", "-", "--"] {
            assert_eq!(options(text), Err(OptionsError::Switch), "{text}");
        }
    }
}
