//! The environment variables by which a server tells a worker where and how to speak.

/// Number of the inherited data stream.
pub const FD: &str = "OSTLER_FD";
/// Number of the inherited control stream.
pub const CTL_FD: &str = "OSTLER_CTL_FD";
/// Path of the socket to connect to when no stream is inherited.
pub const SOCKET: &str = "OSTLER_SOCKET";
/// What a connecting worker presents in `ready` and `control`.
pub const TOKEN: &str = "OSTLER_TOKEN";
/// The protocol version that the server speaks.
pub const PROTOCOL: &str = "OSTLER_PROTOCOL";
/// The wires that the server offers, best first, separated by commas.
pub const WIRES: &str = "OSTLER_WIRES";
/// Name of the pool.
pub const POOL: &str = "OSTLER_POOL";
/// Name of the worker, such as `py-3`.
pub const WORKER: &str = "OSTLER_WORKER";
/// Which incarnation of the worker this process is.
pub const GENERATION: &str = "OSTLER_GENERATION";
/// Largest `length` of a binary frame, in bytes.
pub const MAX_FRAME: &str = "OSTLER_MAX_FRAME";
/// Longest line, in bytes, without its newline.
pub const MAX_LINE: &str = "OSTLER_MAX_LINE";
/// How the worker is to run its handlers: `process`, `thread` or `async`.
pub const PROFILE: &str = "OSTLER_PROFILE";
/// How many requests at a time the pool wants of the worker.
pub const CAPACITY: &str = "OSTLER_CAPACITY";
/// What a threaded worker does about handlers that are not declared safe: `off`, `warn`, `refuse`.
pub const THREAD_SAFETY: &str = "OSTLER_THREAD_SAFETY";
