//! The `tracing` layer that writes a line for each event.

use jiff::Timestamp;
use lariat_core::clock;
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::fields::{Fields, Record, Scope};
use super::output::Output;
use super::{json, text};

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Text for people, coloured on a terminal.
    #[default]
    Text,
    /// One JSON object per line, with the fields of all spans.
    Json,
}

/// Writes a line for each event.
pub(super) struct Lines {
    output: Output,
    format: Format,
    coloured: bool,
}

impl Lines {
    pub(super) fn new(output: Output, format: Format, coloured: Option<bool>) -> Self {
        Self {
            coloured: coloured.unwrap_or_else(|| output.is_coloured()),
            output,
            format,
        }
    }

    fn line(&self, record: &Record<'_>) -> String {
        let now = Timestamp::try_from(clock::now()).unwrap_or_default();
        match self.format {
            Format::Text => text::line(record, now, self.coloured),
            Format::Json => json::line(record, now),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            // Kept with the span, because `tracing` shows the values only when they are recorded.
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &SpanRecord<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let spans: Vec<_> = context.event_scope(event).into_iter().flatten().collect();
        let extensions: Vec<_> = spans
            .iter()
            .map(|span| (span.metadata(), span.extensions()))
            .collect();
        let scopes: Vec<Scope<'_>> = extensions
            .iter()
            .filter_map(|(metadata, extensions)| {
                // A span that was created before this layer was installed has no fields here.
                let fields = extensions.get::<Fields>()?;
                Some(Scope { metadata, fields })
            })
            .collect();
        let line = self.line(&Record {
            metadata: event.metadata(),
            fields: &fields,
            spans: &scopes,
        });
        // Released before writing, which may block: other threads may record fields of the same spans.
        drop(scopes);
        drop(extensions);
        self.output.write(line);
    }
}
