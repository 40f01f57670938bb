import com.onthegomap.planetiler.FeatureCollector;
import com.onthegomap.planetiler.Planetiler;
import com.onthegomap.planetiler.Profile;
import com.onthegomap.planetiler.config.Arguments;
import com.onthegomap.planetiler.reader.SourceFeature;
import java.nio.file.Path;
import java.util.List;

/** Draws the sea of a GeoParquet file of water with Planetiler: Sea.java WATER.parquet OUT.mbtiles */
public class Sea implements Profile {
    @Override
    public void processFeature(SourceFeature source, FeatureCollector features) {
        if (source.canBePolygon()) {
            features.polygon("water").setBufferPixels(4).setMinPixelSizeAtAllZooms(0);
        }
    }

    @Override
    public String name() {
        return "sea";
    }

    public static void main(String[] files) throws Exception {
        Planetiler.create(Arguments.of("minzoom", "0", "maxzoom", "12", "tmpdir", files[1] + ".tmp"))
            .setProfile(new Sea())
            .addParquetSource("water", List.of(Path.of(files[0])))
            .overwriteOutput(Path.of(files[1]))
            .run();
    }
}
