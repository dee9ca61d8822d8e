// Performs workflows whose steps do nothing, in the database of the first argument. Each line of standard input is "RUNS STEPS"; the answer is
// how many milliseconds that many runs at once with that many steps each took.
import { createInterface } from "node:readline";
import { DBOS } from "@dbos-inc/dbos-sdk";

const steps = DBOS.registerWorkflow(
  async (n) => {
    let last = { n: 0 };
    for (let i = 0; i < n; i++) last = await DBOS.runStep(async () => ({ n: last.n + 1, pad: "the store keeps" }), { name: "act" });
    return last;
  },
  { name: "steps" },
);

DBOS.setConfig({ name: "steps", systemDatabaseUrl: process.argv[2], logLevel: "error", runAdminServer: false });
await DBOS.launch();
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [runs, n] = line.split(" ").map(Number);
  const begun = performance.now();
  const handles = await Promise.all(Array.from({ length: runs }, () => DBOS.startWorkflow(steps)(n)));
  for (const h of handles) {
    const last = await h.getResult();
    if (last.n !== n) throw new Error(`a run ended behind ${last.n} of ${n} steps`);
  }
  console.log(performance.now() - begun);
}
await DBOS.shutdown();
