//! holdfast: settings.
