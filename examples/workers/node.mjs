// A worker in Node without the SDK: four calls at a time, streams, cancel.
//
// One line of the stream is one JSON object. The stream is not standard output, so print what you
// like with console.log. What a worker must hear is in the switch at the end.
import { connect, Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

// A function gets its payload, a signal that says "cancelled", and a way to send a chunk.
const functions = {
  echo: (payload) => payload,
  count: async (n, signal, chunk) => {
    for (let i = 0; i < n && !signal.aborted; i++) await chunk(i);
    signal.throwIfAborted();
    return "done";
  },
  wait: (seconds, signal) => sleep(seconds * 1000, "rested", { signal }),
};

// The server hands the stream over as a descriptor, or names a socket to connect to.
const { OSTLER_FD, OSTLER_SOCKET, OSTLER_TOKEN } = process.env;
const stream = OSTLER_FD ? new Socket({ fd: Number(OSTLER_FD) }) : connect(OSTLER_SOCKET);
stream.on("error", () => process.exit(1)); // a reset is an end like any other

const send = (message) => stream.write(JSON.stringify(message) + "\n");
const running = new Map(); // requestId -> AbortController
let [served, leaving] = [0, false];

async function answer({ requestId, function: name, payload }) {
  const controller = new AbortController();
  running.set(requestId, controller);
  // A chunk waits while the server does not read, and lets the next line in: it may be a cancel.
  const chunk = (content) =>
    send({ type: "message", requestId, content })
      ? sleep(0)
      : new Promise((resume) => stream.once("drain", resume));
  try {
    if (!Object.hasOwn(functions, name)) {
      throw { code: "function_not_found", message: `no function ${name}`, started: false };
    }
    const result = await functions[name](payload, controller.signal, chunk);
    send({ type: "complete", requestId, result: result ?? null });
  } catch (e) {
    if (controller.signal.aborted) send({ type: "cancelled", requestId });
    else send({ type: "error", requestId, error: e instanceof Error ? String(e) : e });
  }
  running.delete(requestId); // one of the three was sent, so the request is over
  served += 1;
  leaveIfDone();
}

function leaveIfDone() {
  if (leaving && !running.size) stream.end('{"type":"shutdown_ack"}\n', () => process.exit());
}

const announced = Object.keys(functions).map((name) => ({ name, streaming: name === "count" }));
send({ type: "ready", token: OSTLER_TOKEN, capacity: 4, functions: announced });

for await (const line of createInterface({ input: stream })) {
  const message = JSON.parse(line);
  switch (message.type) { // a type that is not here is one of a later version: ignore it
    case "query": answer(message); break; // not awaited: calls overlap
    case "cancel": running.get(message.requestId)?.abort(); break;
    case "health_check": send({ type: "health_ok", uptime: process.uptime(), queriesProcessed: served }); break;
    case "shutdown":
      if (message.graceful === false) process.exit();
      leaving = true;
      leaveIfDone();
  }
}
process.exit(); // the stream has ended, and with it the worker
