// What elements are made by: build.mjs adds these names to each file.
export {createElement, Fragment} from "preact";
