// The script of the page on which maplibre-adiff-viewer draws an augmented diff, over white paper.

import { MapLibreAugmentedDiffViewer } from "@osmcha/maplibre-adiff-viewer";
import maplibregl from "maplibre-gl";
import css from "maplibre-gl/dist/maplibre-gl.css";

const STYLE = {
  version: 8,
  sources: {},
  layers: [{ id: "paper", type: "background", paint: { "background-color": "white" } }],
};

/** Draws what osm-adiff-parser has read. Returns the number of visible features by action. */
window.draw = async (diff) => {
  document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
  document.body.style.cssText = "margin: 0; height: 100vh";
  const viewer = new MapLibreAugmentedDiffViewer(diff);
  const map = new maplibregl.Map({
    container: document.body,
    style: STYLE,
    bounds: viewer.bounds(),
    fitBoundsOptions: { padding: 40 },
    fadeDuration: 0,
  });
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error("the map is not ready after a minute")), 60_000);
    map.on("error", ({ error }) => reject(error));
    map.once("load", () => {
      viewer.addTo(map);
      map.on("idle", () => map.isSourceLoaded("changeset") && resolve());
    });
  });
  // A feature is drawn in several layers and tiles. Its old and its new state have the same id.
  const counts = { create: 0, modify: 0, delete: 0, noop: 0 };
  const seen = new Set();
  for (const { id, properties } of map.queryRenderedFeatures()) {
    const key = `${id} ${properties.side}`;
    if (!seen.has(key)) counts[properties.action]++;
    seen.add(key);
  }
  return counts;
};
