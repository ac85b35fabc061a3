//! Words to people and to pipes. Where nobody listens any more, nothing is left to do.

use std::io::{self, Write};

/// A result, on standard output.
pub(crate) fn result(text: &str) {
    drop(write(&mut io::stdout().lock(), text));
}

/// A complaint or a remark, on standard error.
pub(crate) fn error(text: &str) {
    drop(write(&mut io::stderr().lock(), text));
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        to.write_all(b"\n")?;
    }
    to.flush()
}
