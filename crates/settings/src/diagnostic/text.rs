use super::{Diagnostic, Severity};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

/// The findings for people: message, place, the line with a caret under what is meant, help.
/// Passwords in the line are masked.
#[must_use]
pub fn to_text(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        text.push_str(&Renderer::plain().render(&groups(diagnostic)));
        text.push_str("\n\n");
    }
    text
}

fn groups(diagnostic: &Diagnostic) -> Vec<Group<'_>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code);
    let mut group = Group::with_title(title);
    if let Some(place) = &diagnostic.place {
        let path = place.file().to_string_lossy().into_owned();
        group = match place.excerpt() {
            Some((line, span)) => {
                let annotation = AnnotationKind::Primary.span(span);
                group
                    .element(Snippet::source(line).line_start(place.line()).path(path).annotation(annotation))
            }
            None => group.element(Origin::path(path).line(place.line()).char_column(place.column())),
        };
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    vec![group]
}
