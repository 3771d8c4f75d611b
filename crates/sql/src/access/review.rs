//! Access reviews: access as the API server decides it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use lariat_core::{Gvk, ResourceKind};
use lariat_http::{Rate, User};
use tokio::sync::Semaphore;

use super::Access;
use super::answers::Answers;
use super::ask::{Asker, Whose};
use super::budget::Budget;
use super::error::AccessError;
use super::verb::Verb;

const DEFAULT_TTL: Duration = Duration::from_secs(30);

const DEFAULT_USERS: usize = 1_000;

const DEFAULT_CONCURRENCY: usize = 16;

const DEFAULT_BUDGET: Rate = Rate::new(6_000, Duration::from_secs(30));

/// Asks the API server which objects users may see.
///
/// A cache reads with the credentials of its program, so the program must decide what to show to others.
/// [`of_user`](Self::of_user) sends reviews to the API server: first whether all objects of a kind may be seen, then
/// one for each namespace. It works with every authorizer, and the program needs the verb `create` for
/// `subjectaccessreviews.authorization.k8s.io`.
///
/// **Names.** A role may allow single objects by `resourceNames`. A `SubjectAccessReview` covers one name at a time and
/// cannot list names, so [`of_user`](Self::of_user) does not find such objects: they are not shown. Such a role denies
/// a review without a name, so nothing more is shown either. [`own`](Self::own) finds them, by a
/// `SelfSubjectRulesReview`.
///
/// **Namespaces as objects.** Roles in a namespace may allow [`Verb::Get`] for the namespace itself, which is reviewed
/// for each given namespace. The API server lists namespaces only for users who may list all of them; use [`Verb::Get`]
/// to show other users theirs.
///
/// **Staleness.** An answer is used for calls that begin within [its TTL](Self::with_ttl) (30 seconds by default) after
/// its question was sent. For that long a revoked role still shows objects, and a new role may not show them yet;
/// caches of the authorizer add to this time. Calls that begin while the same question is pending wait for its answer.
/// An error is returned to all waiting calls, and is not cached.
///
/// **Tokens.** An answer is for the user with its uid, groups and extra values. The id of a credential
/// (`authentication.kubernetes.io/credential-id`), which each token of a ServiceAccount has of its own, is neither part
/// of the question nor sent: an authorizer that refuses single credentials is not asked about them.
///
/// **Budget.** The reviews about a user have a [rate](Self::with_budget). Once it is spent, questions that need reviews
/// fail with [`AccessError::Budget`] until reviews are allowed again; cached answers are still used.
///
/// A clone shares the cached answers.
///
/// ```no_run
/// use lariat::core::{ResourceKind, Scope};
/// use lariat::sql::{AccessReviews, User, Verb};
/// use lariat::Gvk;
///
/// # async fn example(client: kube::Client) -> Result<(), lariat::sql::AccessError> {
/// let reviews = AccessReviews::new(client);
/// let pods = ResourceKind::new(Gvk::new("", "v1", "Pod"), "pods", Scope::Namespaced);
/// let jane = User::new("jane").group("system:authenticated");
/// let access = reviews.of_user(&jane, Verb::List, &pods, ["shop", "bank"]).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct AccessReviews {
    client: Client,
    permits: Arc<Semaphore>,
    concurrency: usize,
    budget: Budget,
    answers: Answers<Whose, Question, Access, AccessError>,
}

/// A question about a user, which takes one review, or about the program itself.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    verb: Verb,
    gvk: Gvk,
    plural: Arc<str>,
    /// `None` for all namespaces.
    namespace: Option<Arc<str>>,
}

impl AccessReviews {
    /// Creates reviews that are sent with this client.
    ///
    /// [`own`](Self::own) is about the credentials of this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            permits: Arc::new(Semaphore::new(DEFAULT_CONCURRENCY)),
            concurrency: DEFAULT_CONCURRENCY,
            budget: Budget::new(DEFAULT_BUDGET),
            answers: Answers::new(DEFAULT_TTL, DEFAULT_USERS),
        }
    }

    #[cfg(feature = "http")]
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Sets how long an answer is used (default 30 seconds).
    ///
    /// The time counts from the moment when the question is sent. With zero every call sends its own question. The
    /// cache of answers is empty afterwards.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.answers = Answers::new(ttl, self.answers.users);
        self
    }

    /// Sets for how many users answers are cached (default 1,000).
    ///
    /// The least recently used users are dropped first. For each user at most 10,000 answers are cached, each for one
    /// namespace. With zero every call sends its own question. The cache of answers is empty afterwards.
    #[must_use]
    pub fn with_users(mut self, users: usize) -> Self {
        self.answers = Answers::new(self.answers.ttl, users);
        self
    }

    /// Sets how many reviews may be pending at a time (default 16).
    ///
    /// The limit is for all users together; zero counts as one.
    #[must_use]
    pub fn with_concurrency(mut self, reviews: usize) -> Self {
        self.concurrency = reviews.clamp(1, Semaphore::MAX_PERMITS);
        self.permits = Arc::new(Semaphore::new(self.concurrency));
        self
    }

    /// Sets how many reviews a user may cause in a time (default 6,000 in 30 s).
    ///
    /// Spent reviews come back evenly. A question that needs more than half of the budget is allowed while half is
    /// left, and the next one waits accordingly longer. Questions that are asked at the same time may exceed the budget
    /// together. Users are identified by their names; zero reviews count as one. [`own`](Self::own) has no such limit.
    /// The budget of every user is whole afterwards.
    #[must_use]
    pub fn with_budget(mut self, reviews: u32, per: Duration) -> Self {
        self.budget = Budget::new(Rate::new(reviews, per));
        self
    }

    /// Returns which objects of a kind a user may see.
    ///
    /// These are all objects, or those in some of the given namespaces. Other namespaces are not part of the answer,
    /// unless it is everything. Cluster-scoped kinds need no namespaces, except `Namespace`. The namespaces may come
    /// from a cache: it does not matter whether they exist. Objects that are allowed by name only are [not
    /// found](Self).
    ///
    /// This takes one review, and one more for each namespace unless everything is allowed. Only what is not cached is
    /// reviewed.
    ///
    /// # Errors
    ///
    /// Fails if the user has neither a name nor groups, the [budget](Self::with_budget) of the user is spent, or a
    /// review failed or was not answered within 10 seconds. Nothing may be shown then; [`AccessError::is_retryable`]
    /// says whether to retry.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped and no other call waits for the same answer, the reviews stop and the answer is lost.
    pub async fn of_user(
        &self,
        user: &User,
        verb: Verb,
        kind: &ResourceKind,
        namespaces: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Access, AccessError> {
        if user.is_unknown() {
            let kind = kind.gvk().clone();
            return Err(AccessError::UnknownUser { verb, kind });
        }
        let whose = Whose::User(user.clone().without_credential());
        self.access(whose, verb, kind, sorted(verb, kind, namespaces))
            .await
    }

    /// Returns which objects of a kind the program itself may see.
    ///
    /// These are all objects, or those in some of the given namespaces and those with some names. They are read from
    /// the rules of the namespaces, with their `resourceNames`. With `list` and `watch`, such a rule allows requests
    /// that select one object by its name, so showing these objects shows what such requests would return. If the API
    /// server reports that its rules are incomplete, as authorizers other than RBAC may be, the namespace and each name
    /// in its rules are reviewed separately, and other names are not shown. Names of cluster-scoped objects are
    /// reviewed one by one.
    ///
    /// This takes one review, and one more for each namespace unless everything is allowed. Every program may create
    /// these reviews.
    ///
    /// # Errors
    ///
    /// Fails if a review failed or was not answered within 10 seconds; see [`of_user`](Self::of_user).
    ///
    /// # Cancel safety
    ///
    /// As for [`of_user`](Self::of_user).
    pub async fn own(
        &self,
        verb: Verb,
        kind: &ResourceKind,
        namespaces: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Access, AccessError> {
        self.access(Whose::Own, verb, kind, sorted(verb, kind, namespaces))
            .await
    }

    async fn access(
        &self,
        whose: Whose,
        verb: Verb,
        kind: &ResourceKind,
        namespaces: Arc<[String]>,
    ) -> Result<Access, AccessError> {
        let asker = Arc::new(Asker {
            client: self.client.clone(),
            permits: Arc::clone(&self.permits),
            at_a_time: self.concurrency,
            whose,
            verb,
            kind: kind.clone(),
            budget: self.budget.clone(),
        });
        let everywhere = self.answers(&asker, &[None]).await?;
        if everywhere.is_everything() || namespaces.is_empty() {
            return Ok(everywhere);
        }
        let namespaces: Vec<_> = namespaces
            .iter()
            .map(|name| Some(name.as_str().into()))
            .collect();
        self.answers(&asker, &namespaces).await
    }

    /// Returns the union of the answers about some namespaces, or all.
    async fn answers(
        &self,
        asker: &Arc<Asker>,
        namespaces: &[Option<Arc<str>>],
    ) -> Result<Access, AccessError> {
        let plural: Arc<str> = asker.kind.plural().into();
        let question = |namespace: &Option<Arc<str>>| Question {
            verb: asker.verb,
            gvk: asker.kind.gvk().clone(),
            plural: Arc::clone(&plural),
            namespace: namespace.clone(),
        };
        let questions: Vec<Question> = namespaces.iter().map(question).collect();
        // Before the first review is sent: a part of the answers would be of no use.
        asker.afford(self.answers.unanswered(&asker.whose, &questions))?;
        let each = questions.into_iter().map(|question| {
            let (answers, asker) = (self.answers.clone(), Arc::clone(asker));
            async move { answer(&answers, asker, question).await }
        });
        let answers = stream::iter(each).buffer_unordered(self.concurrency);
        let all = answers.try_fold(Access::nothing(), async |all, more| Ok(all.union(&more)));
        all.await
    }
}

/// Returns the answer to a question, from the cache or by a review.
async fn answer(
    answers: &Answers<Whose, Question, Access, AccessError>,
    asker: Arc<Asker>,
    question: Question,
) -> Result<Access, AccessError> {
    let (whose, namespace) = (asker.whose.clone(), question.namespace.clone());
    let ask = async move {
        match namespace {
            None => asker.everywhere().await,
            Some(namespace) => asker.in_namespace(&namespace).await,
        }
    };
    answers.get(whose, question, ask).await
}

/// Returns the sorted namespaces, each once; none if the answer needs none.
fn sorted(
    verb: Verb,
    kind: &ResourceKind,
    namespaces: impl IntoIterator<Item = impl Into<String>>,
) -> Arc<[String]> {
    if !Asker::is_about_namespaces(verb, kind) {
        return Arc::default();
    }
    let mut namespaces: Vec<String> = namespaces
        .into_iter()
        .map(Into::into)
        // A review without a namespace is about all of them.
        .filter(|name: &String| !name.is_empty())
        .collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    namespaces.into()
}

impl fmt::Debug for AccessReviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessReviews")
            .field("ttl", &self.answers.ttl)
            .field("users", &self.answers.users)
            .field("concurrency", &self.concurrency)
            .field("budget", &self.budget.rate)
            .finish_non_exhaustive()
    }
}
