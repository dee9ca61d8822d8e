import assert from "node:assert/strict";
import {test} from "node:test";
import {Journal} from "../../src/model/journal.ts";
import type {Entry} from "../../src/model/wire.ts";
import {backoff, Replay, type ListChange, type ListName, type Watcher} from "../../src/net/replay.ts";
import {frameOf, journal, type Said} from "./journal.ts";

const many = (n: number, branch = ""): Entry[] => journal(Array.from({length: n}, (_, i): Said => ["text", "a#1", {content: String(i)}]), branch);

// A socket and a clock that do only what the test says.
class Stage {
  sockets: Socket[] = [];
  time = 0;
  timers: {at: number; f: () => void}[] = [];
  replay = new Replay({
    open: () => {
      const s = new Socket();
      this.sockets.push(s);
      return s as unknown as WebSocket;
    },
    random: () => 0.5,
    later: (f, ms) => {
      const t = {at: this.time + ms, f};
      this.timers.push(t);
      return () => {
        this.timers = this.timers.filter((x) => x !== t);
      };
    },
    now: () => this.time,
  });

  get socket(): Socket {
    return this.sockets.at(-1)!;
  }

  pass(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.time = Math.max(this.time, next.at);
      this.timers = this.timers.filter((t) => t !== next);
      next.f();
    }
    this.time = end;
  }
}

class Socket {
  sent: Record<string, unknown>[] = [];
  onopen = () => {};
  onmessage = (_: {data: string}) => {};
  onclose = () => {};
  onerror = () => {};
  closed = false;

  send(s: string): void {
    this.sent.push(JSON.parse(s) as Record<string, unknown>);
  }
  close(): void {
    this.closed = true;
  }
  say(...frames: Record<string, unknown>[]): void {
    for (const f of frames) this.onmessage({data: JSON.stringify(f)});
  }
  get asked(): Record<string, unknown>[] {
    return this.sent.filter((f) => f["type"] === "replay_request");
  }
}

function watching(watcher: Watcher = {}): {stage: Stage; held: Journal; seen: number[]; stop: () => void} {
  const stage = new Stage();
  const held = new Journal();
  const seen: number[] = [];
  const stop = stage.replay.watch("R", held, {...watcher, events: (es) => seen.push(...es.map((e) => e.seq))});
  stage.replay.start();
  stage.socket.onopen();
  return {stage, held, seen, stop};
}

test("it asks from the start, then from its cursor after each disconnect, and shows each event once", () => {
  const all = many(30);
  let asked = 0;
  const {stage, seen} = watching({asked: () => asked++});
  const first: unknown = stage.socket.asked[0];
  assert.deepEqual(first, {type: "replay_request", id: "1", sessionId: "R", fromSeq: 0, live: true, batch: true});
  stage.socket.say(...all.slice(0, 10).map((e) => frameOf(e, "replay_event")));
  stage.socket.onclose();
  assert.equal(stage.replay.link, "lost");
  stage.pass(125);
  stage.socket.onopen();
  assert.equal(stage.sockets.length, 2);
  assert.equal(stage.socket.asked[0]!["fromSeq"], 10);
  assert.equal(stage.socket.asked[0]!["lastCid"], "cid10");
  assert.equal(asked, 2, "what is being said comes again from its beginning");
  stage.socket.say(...all.slice(8).map((e) => frameOf(e))); // two are known
  assert.deepEqual(seen, all.map((e) => e.seq));
});

test("a batch is taken as its events", () => {
  const all = many(5);
  const {stage, seen} = watching();
  stage.socket.say({type: "replay_batch", id: "1", events: all.map((e) => frameOf(e))});
  assert.deepEqual(seen, [1, 2, 3, 4, 5]);
});

test("a hole is asked for again at once, and frames of the old request are not taken", () => {
  const all = many(6);
  const {stage, seen} = watching();
  stage.socket.say(frameOf(all[0]!), frameOf(all[3]!));
  stage.pass(0);
  const again = stage.socket.asked[1]!;
  assert.equal(again["fromSeq"], 1);
  assert.notEqual(again["id"], "1");
  stage.socket.say(frameOf(all[4]!)); // on its way before
  stage.socket.say(...all.slice(1).map((e) => frameOf(e, "event", String(again["id"]))));
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6]);
});

test("a heartbeat beyond what came tells of a hole", () => {
  const all = many(3);
  const {stage} = watching();
  stage.socket.say(frameOf(all[0]!), {type: "heartbeat", id: "1", lastSeq: 1});
  assert.equal(stage.socket.asked.length, 1);
  stage.socket.say({type: "heartbeat", id: "1", lastSeq: 3});
  stage.pass(0);
  assert.equal(stage.socket.asked[1]!["fromSeq"], 1);
});

test("a reset cuts to what is common, and the other history follows", () => {
  const ours = many(8);
  const theirs = [...ours.slice(0, 5), ...many(8, "x").slice(5)];
  theirs[5] = {...theirs[5]!, prev: "cid5"};
  let cut = 0;
  const {stage, held, seen} = watching({reset: () => cut++});
  stage.socket.say(...ours.map((e) => frameOf(e)));
  stage.socket.say({type: "reset", id: "1", reason: "head_moved", commonSeq: 5, commonCid: "cid5", headSeq: 8});
  assert.equal(cut, 1);
  assert.equal(held.seq, 5);
  stage.socket.say(...theirs.slice(5).map((e) => frameOf(e)));
  assert.equal(held.cid, "cidx8");
  assert.deepEqual(seen, [1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8]);
});

test("a reset to an event that is not ours begins anew", () => {
  const {stage, held} = watching();
  stage.socket.say(...many(4).map((e) => frameOf(e)));
  stage.socket.say({type: "reset", id: "1", commonSeq: 3, commonCid: "foreign"});
  stage.pass(0);
  assert.equal(held.seq, 0);
  assert.equal(stage.socket.asked.at(-1)!["fromSeq"], 0);
});

test("an event of another history is never taken; the server is asked with our CID", () => {
  const {stage, held} = watching();
  stage.socket.say(...many(4).map((e) => frameOf(e)));
  stage.socket.say(frameOf(many(6, "x")[4]!));
  stage.pass(0);
  assert.equal(held.seq, 4);
  assert.equal(stage.socket.asked.at(-1)!["lastCid"], "cid4");
});

test("a server that always sends what does not fit is asked more and more slowly", () => {
  const {stage} = watching();
  const stray = many(9)[7]!;
  const times: number[] = [];
  for (let i = 0; i < 6; i++) {
    const id = String(stage.socket.asked.at(-1)!["id"]);
    const before = stage.socket.asked.length;
    const from = stage.time;
    stage.socket.say(frameOf(stray, "event", id));
    while (stage.socket.asked.length === before) stage.pass(1);
    times.push(stage.time - from);
  }
  assert.ok(times[0]! <= 1);
  assert.ok(times.slice(1).every((t, i) => t > times[i]!), String(times));
});

test("a cursor from the future begins anew", () => {
  const {stage, held} = watching();
  stage.socket.say(...many(4).map((e) => frameOf(e)));
  stage.socket.say({type: "replay_error", id: "1", code: "future_cursor", message: "beyond", headSeq: 2});
  stage.pass(0);
  assert.equal(held.seq, 0);
  assert.equal(stage.socket.asked.at(-1)!["fromSeq"], 0);
});

test("an error that can pass is tried again, one that cannot is told as final", () => {
  const told: [string, boolean][] = [];
  const {stage} = watching({error: (code, _, final) => told.push([code, final])});
  stage.socket.say({type: "replay_error", id: "1", code: "agent_unavailable", message: "away"});
  stage.pass(15_000);
  assert.equal(stage.socket.asked.length, 2);
  stage.socket.say({type: "replay_error", id: String(stage.socket.asked[1]!["id"]), code: "gap", message: "events 3…5"});
  stage.pass(60_000);
  assert.equal(stage.socket.asked.length, 2);
  assert.deepEqual(told, [["agent_unavailable", false], ["gap", true]]);
});

test("a socket that is silent in spite of pings is given up", () => {
  const {stage} = watching();
  stage.pass(41_000);
  assert.equal(stage.socket.sent.filter((f) => f["type"] === "ping").length, 2);
  assert.equal(stage.replay.link, "open");
  stage.pass(20_000);
  assert.ok(stage.sockets[0]!.closed);
  assert.equal(stage.sockets.length, 2);
});

test("garbage, unknown frames and frames of nobody change nothing", () => {
  const {stage, held, seen} = watching();
  stage.socket.onmessage({data: "{"});
  stage.socket.say({type: "novelty", id: "1"}, frameOf(many(1)[0]!, "event", "77"), {type: "event", id: "1"});
  assert.equal(held.seq, 0);
  assert.deepEqual(seen, []);
  assert.equal(stage.replay.link, "open");
});

test("who stops watching says so, and hears nothing more", () => {
  const {stage, seen, stop} = watching();
  stop();
  assert.deepEqual(stage.socket.sent.at(-1), {type: "cancel", id: "1"});
  stage.socket.say(frameOf(many(1)[0]!));
  assert.deepEqual(seen, []);
});

test("the waits have full jitter and end at 15 s", () => {
  assert.equal(backoff(0, 0.999999) < 250, true);
  assert.equal(backoff(3, 0.5), 1000);
  assert.equal(backoff(30, 1), 15_000);
  assert.equal(backoff(30, 0), 0);
});

function listening(lists: readonly ListName[]): {stage: Stage; said: ListChange[]; stop: () => void} {
  const stage = new Stage();
  const said: ListChange[] = [];
  const stop = stage.replay.list(lists, (c) => said.push(c));
  stage.replay.start();
  stage.socket.onopen();
  return {stage, said, stop};
}

const ofLists = (s: Socket) => s.sent.filter((f) => f["type"] === "list_request");

test("changes of lists arrive, by runs or for the whole list", () => {
  const {stage, said, stop} = listening(["runs", "queue"]);
  assert.deepEqual(stage.socket.sent, [{type: "list_request", id: "1", lists: ["runs", "queue"]}]);
  stage.socket.say(
    {type: "list_changed", id: "1", list: "runs", all: true},
    {type: "list_changed", id: "1", list: "runs", runs: ["A", "B"]},
    {type: "list_changed", id: "1", list: "queue", all: true},
    {type: "list_changed", id: "1", list: "runs", runs: ["A"], all: true},
    {type: "list_changed", id: "1", list: "tables", all: true}, // was not asked for
    {type: "list_changed", id: "2", list: "runs", all: true},
  );
  assert.deepEqual(said, [{list: "runs", runs: null}, {list: "runs", runs: ["A", "B"]}, {list: "queue", runs: null}, {list: "runs", runs: null}]);
  stop();
  assert.deepEqual(stage.socket.sent.at(-1), {type: "cancel", id: "1"});
  stage.socket.say({type: "list_changed", id: "1", list: "runs", all: true});
  assert.equal(said.length, 4);
});

test("after a disconnect lists are asked for again, and so are those that were asked for meanwhile", () => {
  const {stage, said, stop} = listening(["runs"]);
  stage.socket.say({type: "list_changed", id: "1", list: "runs", all: true});
  stage.socket.onclose();
  const stopOther = stage.replay.list(["tables"], (c) => said.push(c));
  stage.pass(125);
  assert.equal(stage.sockets.length, 2);
  assert.deepEqual(stage.socket.sent, []);
  stage.socket.onopen();
  assert.deepEqual(ofLists(stage.socket).map((f) => f["lists"]), [["runs"], ["tables"]]);
  stage.socket.say({type: "list_changed", id: "1", list: "runs", all: true});
  assert.deepEqual(said, [{list: "runs", runs: null}, {list: "runs", runs: null}]);
  stop();
  stopOther();
});

test("a list whose changes are not pushed counts as changed once a minute", () => {
  const {stage, said, stop} = listening(["runs", "tables"]);
  stage.socket.say({type: "list_changed", id: "1", list: "runs", all: true});
  for (const minute of [1, 2]) {
    for (let s = 0; s < 60; s += 20) {
      stage.pass(20_000);
      stage.socket.say({type: "pong", n: 1});
    }
    assert.equal(said.filter((c) => c.list === "tables").length, minute);
  }
  assert.equal(said.filter((c) => c.list === "runs").length, 1);
  stop();
  stage.pass(600_000);
  assert.equal(said.length, 3);
});

test("a refusal that passes is met by asking again, another one by waiting", () => {
  const {stage, stop} = listening(["runs"]);
  stage.socket.say({type: "replay_error", id: "1", code: "rate_limited", message: "too many"});
  assert.equal(ofLists(stage.socket).length, 1);
  stage.pass(1000);
  assert.equal(ofLists(stage.socket).length, 2);
  stage.socket.say({type: "replay_error", id: "1", code: "bad_request", message: "no lists here"});
  stage.pass(15_000);
  assert.equal(ofLists(stage.socket).length, 2);
  stop();
});
