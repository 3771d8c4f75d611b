//! Projects: namespaces that a query selects by a label.

use super::authorize::of_namespaces;
use super::shared::{ServiceState, path_of};
use super::status::Refusal;
use super::visible::View;
use crate::access::User;
use crate::query::{Operator, Query, field, label};
use crate::schema::NAME;

impl ServiceState {
    /// Replaces the namespace label of a query by names of namespaces.
    ///
    /// These are the namespaces with the label that the user may see. Otherwise a user who sees objects in a namespace,
    /// but not the namespace itself, could find out its labels by trying them. For a user who may see all namespaces
    /// nothing is replaced: the cache joins them, in the same state as the objects.
    pub(super) async fn without_label(
        &self,
        user: &User,
        mut query: Query,
    ) -> Result<Query, Refusal> {
        let Some(namespaces) = &mut query.namespaces else {
            return Ok(query);
        };
        let of_namespaces = self.kinds.get(&path_of(&of_namespaces()));
        let (Some(key), Some(kind)) = (&namespaces.label, of_namespaces) else {
            return Ok(query);
        };
        let access = self.access(user, kind, &Query::new()).await?;
        if access.is_everything() {
            return Ok(query);
        }
        let has_label = label(key).is(Operator::In, &namespaces.values);
        let labelled = Query::new().filter(has_label);
        let names = labelled.summarize(field(NAME)).only_counts();
        let bytes = self.bytes.answer(user);
        let found = View::new(kind, access).query(&names, &bytes).await?;
        let counts = found.summaries.into_iter().flatten();
        namespaces.values.extend(counts.map(|count| count.value));
        namespaces.label = None;
        Ok(query)
    }
}
