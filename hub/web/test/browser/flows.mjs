// The workflows of the situations in which people meet the page.

const cities = ["Lima", "Oslo", "Rome", "Quito", "Cairo", "Accra", "Delhi", "Perth"];

/** So many roles in a row, with two loops back, and one beside. */
function team(n) {
  const role = (i) => `stage-${String(i).padStart(2, "0")}`;
  const roles = [];
  const edges = [`  - {from: START, to: ${role(1)}}`];
  for (let i = 1; i <= n; i++) {
    const counts = `, n: "\${{ (steps['${role(i)}']?.output.n ?? 0) + 1 }}"`;
    roles.push(i % 7 === 3 ? `  ${role(i)}: {run: "echo stage ${i} of ${n} has looked at the change"}` : `  ${role(i)}: {set: {verdict: good${i === 8 || i === 16 ? counts : ""}}}`);
    if (i === 8) edges.push(`  - {from: ${role(8)}, to: ${role(3)}, when: output.n < 3, limit: 5}`);
    if (i === 16) edges.push(`  - {from: ${role(16)}, to: ${role(12)}, when: output.n < 2, limit: 5}`);
    edges.push(`  - {from: ${role(i)}, to: ${i === n ? "END" : role(i + 1)}}`);
  }
  return `
wf: 1
name: team-of-${n}
description: Many hands look at one change, some of them twice
limits: {steps: 500}
roles:
${roles.join("\n")}
edges:
${edges.join("\n")}
outputs: {verdict: good, rounds: "\${{ steps['stage-08'].output.n }}"}
`;
}

/** So many rounds of two steps, some 4 events each, and a question at the end. */
export function counting(name, rounds) {
  return `
wf: 1
name: ${name}
inputs: {rounds: {type: integer, default: ${rounds}}}
limits: {steps: 100000}
roles:
  odd: {set: {n: "\${{ (steps.odd?.output.n ?? 0) + 1 }}"}}
  even: {set: {n: "\${{ steps.odd.output.n }}"}}
  gate: {ask: "Was that enough?", choices: [{label: It was, value: enough, primary: true}]}
edges:
  - {from: START, to: odd}
  - {from: odd, to: even}
  - {from: even, to: odd, when: output.n < inputs.rounds, limit: 50000}
  - {from: even, to: gate}
  - {from: gate, to: END}
`;
}

// A person fills in a form.
const publish = `  publish:
    ask: |
      **Publish the catalogue?**

      It has \${{ inputs.n }} entries. All of them were checked.
    form:
      type: object
      required: [edition, audience]
      properties:
        edition: {type: string, title: Edition, description: as printed on the cover, minLength: 3}
        audience: {type: string, enum: [readers, librarians, all]}
        copies: {type: integer, minimum: 1, default: 500}`;

/** By file. */
export const flows = {
  "team20.yaml": team(20),
  "team60.yaml": team(60),
  // A list is reviewed by a model, item by item; some items are not well, and one answer decides.
  "catalogue.yaml": `
wf: 1
name: catalogue
description: Each entry of the catalogue is checked by a model; a person decides about what is left
inputs: {n: {type: integer, default: 1000}, bad: {type: array, default: []}}
limits: {steps: 5000}
roles:
  list: {set: {items: "\${{ map(0..(inputs.n - 1), {({name: 'entry ' + string(#), bad: # in inputs.bad})}) }}"}}
  check:
    model: script/catalogue-replies.yaml
    prompt: You check entries of a catalogue. An entry without a price is wrong.
    retry: {attempts: 1}
    output: {type: object, required: [verdict], properties: {verdict: {enum: [good]}, note: {type: string}}}
${publish}
edges:
  - {from: START, to: list}
  - {from: list, to: check, for_each: output.items, max_parallel: 8, prompt: "Check \${{ item.name }}.\${{ item.bad ? ' It has no price.' : '' }}"}
  - {from: check, to: publish}
  - {from: check, to: FAIL, on: failure}
  - {from: publish, to: END}
outputs: {edition: "\${{ steps.publish.output.edition }}"}
`,
  "edition.yaml": `
wf: 1
name: edition
inputs: {n: {type: integer, default: 12}}
roles:
${publish}
outputs: {edition: "\${{ steps.publish.output.edition }}", audience: "\${{ steps.publish.output.audience }}"}
`,
  // So many items that do nothing, and as many steps behind them as are read at once.
  "many.yaml": `
wf: 1
name: many
limits: {steps: 20000}
inputs: {n: {type: integer, default: 10000}, after: {type: integer, default: 1200}}
roles:
  list: {set: {items: "\${{ 0..(inputs.n - 1) }}"}}
  each: {set: {n: "\${{ item }}"}}
  after: {set: {n: "\${{ (steps.after?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: list}
  - {from: list, to: each, for_each: output.items}
  - {from: each, to: after}
  - {from: after, to: after, when: output.n < inputs.after, limit: 1300}
  - {from: after, to: END}
`,
  // Items of which some fail, and more steps behind them than are read at once.
  "far.yaml": `
wf: 1
name: far
limits: {steps: 5000}
roles:
  list: {set: {items: "\${{ 0..999 }}"}}
  check:
    model: script/catalogue-replies.yaml
    prompt: You check entries of a catalogue. An entry without a price is wrong.
    retry: {attempts: 1}
    output: {type: object, required: [verdict], properties: {verdict: {enum: [good]}, note: {type: string}}}
  after: {set: {n: "\${{ (steps.after?.output.n ?? 0) + 1 }}"}}
edges:
  - {from: START, to: list}
  - {from: list, to: check, for_each: output.items, max_parallel: 8, prompt: "Check entry \${{ item }}."}
  - {from: check, to: after}
  - {from: check, to: after, on: failure}
  - {from: after, to: after, when: output.n < 1100, limit: 1300}
  - {from: after, to: END}
`,
  // More items that fail than are read at once, more steps behind them, and a question.
  "mostly.yaml": `
wf: 1
name: mostly
limits: {steps: 5000}
roles:
  list: {set: {items: "\${{ 0..1999 }}"}}
  check:
    model: script/mostly-replies.yaml
    prompt: You check entries of a catalogue.
    retry: {attempts: 1}
    output: {type: object, required: [verdict], properties: {verdict: {enum: [good]}, note: {type: string}}}
  after: {set: {n: "\${{ (steps.after?.output.n ?? 0) + 1 }}"}}
  gate: {ask: Go on?}
edges:
  - {from: START, to: list}
  - {from: list, to: check, for_each: output.items, max_parallel: 8, prompt: "Check entry \${{ item }}."}
  - {from: check, to: after}
  - {from: check, to: after, on: failure}
  - {from: after, to: after, when: output.n < 1100, limit: 1300}
  - {from: after, to: gate}
  - {from: gate, to: END}
`,
  // Commands that fail, and are treated as data.
  "links.yaml": `
wf: 1
name: links
description: Looks at every link
inputs: {n: {type: integer, default: 50}, dead: {type: integer, default: 7}}
limits: {steps: 2000}
roles:
  list: {set: {items: "\${{ 0..(inputs.n - 1) }}"}}
  look: {run: 'echo "link $ITEM"; [ "$ITEM" != "$DEAD" ] || { echo "404 Not Found" >&2; exit 4; }', env: {ITEM: "\${{ item }}", DEAD: "\${{ inputs.dead }}"}, continue_on_error: true}
  tell: {set: {dead: "\${{ count(output, .exit_code != 0) }}"}}
edges:
  - {from: START, to: list}
  - {from: list, to: look, for_each: output.items, max_parallel: 8}
  - {from: look, to: tell}
  - {from: tell, to: END}
outputs: {dead: "\${{ steps.tell.output.dead }}"}
`,
  "big.yaml": counting("big", 25_000),
  "city.yaml": `
wf: 1
name: city
inputs: {name: {type: string, required: true}}
roles:
  look: {run: 'echo "$NAME has a market"', env: {NAME: "\${{ inputs.name }}"}}
outputs: {text: "\${{ steps.look.text }}"}
`,
  "journey.yaml": `
wf: 1
name: journey
description: A run of its own for each city
roles:
  plan: {set: {cities: [${cities.join(", ")}]}}
  visit: {workflow: city.yaml, with: {name: "\${{ item }}"}}
  tell: {set: {seen: "\${{ len(output) }}"}}
edges:
  - {from: START, to: plan}
  - {from: plan, to: visit, for_each: output.cities}
  - {from: visit, to: tell}
  - {from: tell, to: END}
outputs: {seen: "\${{ steps.tell.output.seen }}"}
`,
};

/** Replies of the model of catalogue: those entries fail by what the model says. */
export function replies(n, bad) {
  const lines = [];
  for (let i = 0; i < n; i++) {
    const text = bad.includes(i) ? "I cannot tell: the entry has no price." : "---\\nverdict: good\\n---\\nThe entry is as it should be.";
    const usage = bad.includes(i) ? "{input: 420, cached: 256, output: 21}" : "{input: 400, cached: 256, output: 18}";
    lines.push(`"check#1[${i}]":`, ...Array.from({length: bad.includes(i) ? 4 : 1}, () => `  - {usage: ${usage}, text: "${text}"}`));
  }
  return lines.join("\n") + "\n";
}
