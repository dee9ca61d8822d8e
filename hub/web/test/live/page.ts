// What the page knows of a run, without its screen: bundled for the tests that compare it with what wf says.
export {Run} from "../../src/state/run.ts";
export {link, locked, login, replay} from "../../src/state/app.ts";
