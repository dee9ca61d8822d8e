import "./style/app.css";
import "./style/graph.css";
import {render} from "preact";
import {begin} from "./state/app.ts";
import {App} from "./ui/app.tsx";

render(<App />, document.getElementById("app")!);
void begin();
