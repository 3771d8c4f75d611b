//! The network between processes and the cluster: latency, breaks, and a limit on concurrent requests.
//!
//! A request leaves the runtime of its process as a message, and a task of the cluster's runtime carries it on. What
//! crosses from one runtime to the other arrives when the other has its turn, so that no message comes before it was
//! sent in the order in which the thread executes events.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderValue, Method, Request, Response, header};
use http_body::Frame;
use http_body_util::BodyExt;
use kube::client::Body;
use lariat_cluster::ClusterService;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::event::{Event, WINDOW};
use crate::record::Recorder;

/// The number of concurrent requests on a link unless a plan says less.
// So many that no program reaches it by accident.
const STREAMS: usize = 4096;

/// One request on its way.
struct PendingRequest {
    request: Request<Bytes>,
    answer: oneshot::Sender<io::Result<Response<Frames>>>,
}

/// The connection of one incarnation of a process to the cluster.
#[derive(Clone)]
pub(crate) struct Link {
    requests: mpsc::UnboundedSender<PendingRequest>,
    agent: HeaderValue,
    traffic: TrafficRecorder,
    sent: Arc<AtomicU64>,
    writing: WritesInFlight,
    broken: CancellationToken,
}

/// The recorder of links, and the request numbers that all links share.
#[derive(Clone)]
pub(crate) struct TrafficRecorder {
    pub(crate) recorder: Recorder,
    numbers: Arc<Mutex<u64>>,
}

impl TrafficRecorder {
    pub(crate) fn new(recorder: &Recorder) -> Self {
        Self {
            recorder: recorder.clone(),
            numbers: Arc::default(),
        }
    }

    fn number(&self) -> u64 {
        let mut numbers = self.numbers.lock();
        *numbers += 1;
        *numbers
    }
}

/// The number of writes of a process that are sent and not answered.
#[derive(Debug, Clone, Default)]
struct WritesInFlight(Arc<AtomicUsize>);

impl WritesInFlight {
    /// Counts a request until the guard is dropped, if it writes.
    fn begin(&self, method: &Method) -> Option<Self> {
        (method != Method::GET).then(|| {
            self.0.fetch_add(1, Ordering::Relaxed);
            self.clone()
        })
    }
}

/// Counts a write down when it ends.
struct WriteGuard(Option<WritesInFlight>);

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if let Some(WritesInFlight(count)) = &self.0 {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The latency and limits of a link; changed while it is in use.
#[derive(Debug)]
pub(crate) struct LinkState {
    random: fastrand::Rng,
    /// The longest a message takes; the least is none.
    pub(crate) latency: Duration,
    /// Whether a sent write reaches the server even if its sender is gone or gave up.
    ///
    /// So it does if it is in a buffer of the network or of the server by then.
    pub(crate) lingers: bool,
    streams: Arc<Semaphore>,
    /// The number of permits taken away from `streams`.
    closed: usize,
    /// The number of times a body had to wait for the turn of its reader.
    pub(crate) waits: u64,
}

impl LinkState {
    pub(crate) fn new(seed: u64) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            random: fastrand::Rng::with_seed(seed),
            latency: Duration::from_millis(5),
            lingers: false,
            streams: Arc::new(Semaphore::new(STREAMS)),
            closed: 0,
            waits: 0,
        }))
    }

    /// Limits the number of concurrent requests; those beyond wait. None lifts the limit.
    pub(crate) fn limit(&mut self, streams: Option<usize>) {
        let closed = STREAMS - streams.unwrap_or(STREAMS).min(STREAMS);
        if closed > self.closed {
            // Permits in use cannot be forgotten; `closed` counts those that were, so that lifting the limit returns as
            // many.
            self.closed += self.streams.forget_permits(closed - self.closed);
        } else {
            self.streams.add_permits(self.closed - closed);
            self.closed = closed;
        }
    }

    fn delay(&mut self) -> Duration {
        let longest = u64::try_from(self.latency.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random.u64(..=longest))
    }
}

impl Link {
    /// Creates a link to the cluster; called on the cluster's runtime.
    pub(crate) fn new(
        agent: &str,
        service: ClusterService,
        state: &Arc<Mutex<LinkState>>,
        traffic: &TrafficRecorder,
    ) -> (Self, impl Future<Output = ()> + use<>) {
        let (requests, arriving) = mpsc::unbounded_channel();
        let agent = HeaderValue::from_str(agent).unwrap_or(HeaderValue::from_static("process"));
        let link = Self {
            requests,
            agent,
            traffic: traffic.clone(),
            sent: Arc::default(),
            writing: WritesInFlight::default(),
            broken: CancellationToken::new(),
        };
        let carrying = carry(arriving, service, Arc::clone(state), link.broken.clone());
        (link, carrying)
    }

    /// Returns how many requests were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Breaks all connections of the process, in the order of their requests.
    ///
    /// The drop of a runtime breaks them, too, but in the order of ids of tasks, which differs from run to run.
    pub(crate) fn cut(&self) {
        self.broken.cancel();
    }

    /// Returns whether a write is sent and not answered.
    pub(crate) fn is_writing(&self) -> bool {
        self.writing.0.load(Ordering::Relaxed) > 0
    }

    async fn request(self, request: Request<Body>) -> io::Result<Response<Frames>> {
        let (mut parts, body) = request.into_parts();
        parts.headers.insert(header::USER_AGENT, self.agent.clone());
        // The bytes are collected first: a stream would be polled by the runtime of the cluster, outside of turns of
        // its process.
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let number = self.traffic.number();
        self.sent.fetch_add(1, Ordering::Relaxed);
        // A guard, because the caller may drop the request before it is answered.
        let _written = WriteGuard(self.writing.begin(&parts.method));
        let what = format!("{} {}", parts.method, parts.uri);
        self.traffic.recorder.note(Event::Sent {
            request: number,
            what,
        });
        let (answer, answered) = oneshot::channel();
        let pending = PendingRequest {
            request: Request::from_parts(parts, body),
            answer,
        };
        let lost = || io::Error::new(io::ErrorKind::ConnectionReset, "the connection broke");
        let result = match self.requests.send(pending) {
            // The sender is dropped without an answer if the connection is cut.
            Ok(()) => answered.await.unwrap_or_else(|_| Err(lost())),
            Err(_) => Err(lost()),
        };
        self.traffic.recorder.note(Event::Answered {
            request: number,
            result: match &result {
                Ok(response) => response.status().as_u16().to_string(),
                Err(error) => error.to_string(),
            },
        });
        result
    }
}

impl Service<Request<Body>> for Link {
    type Response = Response<Frames>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().request(request))
    }
}

/// Carries requests until the process is gone.
async fn carry(
    mut arriving: mpsc::UnboundedReceiver<PendingRequest>,
    service: ClusterService,
    state: Arc<Mutex<LinkState>>,
    broken: CancellationToken,
) {
    let tasks = TaskTracker::new();
    while let Some(pending) = arriving.recv().await {
        let delivering = deliver(pending, service.clone(), Arc::clone(&state), tasks.clone());
        // One task for each request, so that requests overtake each other by their random delays.
        tasks.spawn(broken.clone().run_until_cancelled_owned(delivering));
    }
    // The process is gone, but its lingering writes still have to reach the server.
    tasks.close();
    tasks.wait().await;
}

/// Delivers a request to the cluster, and its answer to the process.
///
/// A process that no longer waits has closed the connection: whatever the cluster had not finished by then is not done,
/// and what it had is. A write that [lingers](LinkState::lingers) is a task of its own, which ends when the server has
/// it.
async fn deliver(
    pending: PendingRequest,
    mut service: ClusterService,
    state: Arc<Mutex<LinkState>>,
    tasks: TaskTracker,
) {
    let PendingRequest {
        request,
        mut answer,
    } = pending;
    let (delay, streams, lingers) = {
        let mut state = state.lock();
        let lingers = state.lingers && request.method() != Method::GET;
        (state.delay(), Arc::clone(&state.streams), lingers)
    };
    let sent = async move {
        time::sleep(delay).await;
        // After the delay: a request that is still on its way takes no place.
        let place = streams.acquire_owned().await;
        let request = request.map(http_body_util::Full::new);
        (service.call(request).await, place)
    };
    let answered = async {
        let (response, place) = if lingers {
            // In a task of its own, which the drop of this future does not end.
            tasks.spawn(sent).await.map_err(io::Error::other)?
        } else {
            sent.await
        };
        let delay = state.lock().delay();
        time::sleep(delay).await;
        response.map(|response| (response, place))
    };
    let response = tokio::select! {
        // `select!` chooses a branch at random, by a seed that only `--cfg tokio_unstable` can set. A biased one is
        // repeatable.
        biased;
        () = answer.closed() => return,
        response = answered => response,
    };
    // The place is kept until the body has ended, as a stream of HTTP/2 is.
    let (response, _place) = match response {
        Ok(response) => response,
        Err(error) => return drop(answer.send(Err(error))),
    };
    let (parts, mut body) = response.into_parts();
    let (frames, receiver) = mpsc::channel(WINDOW);
    if answer
        .send(Ok(Response::from_parts(parts, Frames(receiver))))
        .is_err()
    {
        return;
    }
    loop {
        let frame = tokio::select! {
            biased;
            // The reader may go away while the body is silent, as a watch is for minutes.
            () = frames.closed() => return,
            frame = body.frame() => frame,
        };
        let Some(frame) = frame else { return };
        let is_last = frame.is_err();
        // The reader has not had a turn since the window filled. This counts as progress, so that the driver keeps
        // turns short while a long body is read.
        if frames.capacity() == 0 {
            state.lock().waits += 1;
        }
        let frame = frame.map(|frame| frame.into_data().unwrap_or_default());
        if frames.send(frame).await.is_err() || is_last {
            return;
        }
    }
}

/// The body of an answer, frame by frame as the network brings them.
#[derive(Debug)]
pub(crate) struct Frames(mpsc::Receiver<io::Result<Bytes>>);

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let received = self.0.poll_recv(context);
        received.map(|frame| frame.map(|frame| frame.map(Frame::data)))
    }
}
