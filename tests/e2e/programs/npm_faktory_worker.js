// A program that uses npm `faktory-worker`: `push` uses all client calls, `work` works until the server sends terminate.

const faktory = require("faktory-worker");

async function push(url) {
  const client = await faktory.connect({ url });
  console.log("pushed", await client.push({ jid: "node-add-1", jobtype: "add", args: [1, 2], custom: { who: "é" } }));
  const many = [0, 1, 2, 3, 4].map((n) => ({ jid: `node-bulk-${n}`, jobtype: "add", args: [n, n] }));
  many.push({ jid: "short", jobtype: "add", args: [] });
  const rejected = await client.pushBulk(many);
  console.log("refused", Object.keys(rejected).join(), rejected.short.reason);
  const flaky = client.job("flaky", "once");
  flaky.jid = "node-flaky";
  flaky.retry = 3;
  console.log("pushed", await flaky.push());
  for (const n of [0, 1, 2]) {
    await client.push({ jid: `later-00${n}`, jobtype: "later", args: [], at: "2999-01-01T00:00:00Z" });
  }
  console.log("mutated", await client.scheduled.withJids("later-000").discard());
  console.log("mutated", await client.scheduled.ofType("later").kill());
  console.log("mutated", await client.dead.clear());
  const info = await client.info();
  console.log("info", JSON.stringify(info.faktory.queues), info.faktory.sets.scheduled);
  await client.close();
}

async function work(url, wid) {
  const seen = new Set();
  faktory.register("add", (a, b) => console.log("worked", a + b));
  faktory.register("flaky", (name) => {
    if (!seen.has(name)) {
      seen.add(name);
      console.log("failing", name);
      throw new Error("not yet");
    }
    console.log("worked", name);
  });
  faktory.register("broken", (id) => {
    throw new Error(`order ${id} has no address in ${id}`);
  });
  faktory.register("coded", () => {
    throw Object.assign(new Error("connect failed"), { code: "ECONNREFUSED" });
  });
  const worker = await faktory.work({ url, wid, concurrency: 2, beatInterval: 0.5 });
  worker.on("error", (error) => console.error(error));
}

const [verb, ...args] = process.argv.slice(2);
({ push, work })[verb](...args).catch((error) => {
  console.error(error);
  process.exit(1);
});
