import com.graphhopper.reader.ReaderElement;
import com.graphhopper.reader.osm.OSMInputFile;
import com.graphhopper.reader.osm.SkipOptions;
import com.onthegomap.planetiler.reader.osm.OsmBlockSource;
import com.onthegomap.planetiler.reader.osm.OsmElement;
import com.onthegomap.planetiler.reader.osm.OsmInputFile;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reads OSM PBF files with GraphHopper and with Planetiler, and prints the number of objects that each finds. */
public class Readers {
    interface Reader {
        Counts read(Path file) throws Exception;
    }

    static class Counts {
        long nodes, ways, relations;

        @Override
        public String toString() {
            return "nodes=" + nodes + " ways=" + ways + " relations=" + relations;
        }
    }

    static Counts graphhopper(Path file) throws Exception {
        Counts counts = new Counts();
        // close() throws the error of the reading thread. Without it a broken file looks like a short one.
        try (OSMInputFile input = new OSMInputFile(file.toFile()).setSkipOptions(SkipOptions.none()).open()) {
            for (ReaderElement element; (element = input.getNext()) != null; ) {
                switch (element.getType()) {
                    case NODE -> counts.nodes++;
                    case WAY -> counts.ways++;
                    case RELATION -> counts.relations++;
                    case FILEHEADER -> { }
                }
            }
        }
        return counts;
    }

    static Counts planetiler(Path file) {
        Counts counts = new Counts();
        try (OsmBlockSource blocks = OsmInputFile.readFrom(file)) {
            blocks.forEachBlock(block -> {
                for (OsmElement element : block.decodeElements()) {
                    if (element instanceof OsmElement.Node) {
                        counts.nodes++;
                    } else if (element instanceof OsmElement.Way) {
                        counts.ways++;
                    } else if (element instanceof OsmElement.Relation) {
                        counts.relations++;
                    }
                }
            });
        }
        return counts;
    }

    /** The root cause of an error, on one line. */
    static String cause(Throwable error) {
        while (error.getCause() != null) {
            error = error.getCause();
        }
        return error.toString().replaceAll("\\s+", " ");
    }

    public static void main(String[] files) {
        Map<String, Reader> readers = new LinkedHashMap<>();
        readers.put("graphhopper", Readers::graphhopper);
        readers.put("planetiler", Readers::planetiler);
        boolean failed = false;
        for (String file : files) {
            for (Map.Entry<String, Reader> reader : readers.entrySet()) {
                String found;
                try {
                    found = reader.getValue().read(Path.of(file)).toString();
                } catch (Throwable error) { // Includes OutOfMemoryError, which a broken file may cause.
                    failed = true;
                    found = "error: " + cause(error);
                }
                System.out.println(reader.getKey() + " " + file + " " + found);
            }
        }
        // Ends threads of readers that may still be waiting.
        System.exit(failed ? 1 : 0);
    }
}
