from rest_framework import filters, serializers, viewsets
from shop.models import Reader


class ReaderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Reader
        fields = "__all__"


class Readers(viewsets.ModelViewSet):
    queryset = Reader.objects.order_by("id")
    serializer_class = ReaderSerializer
    permission_classes = []
    filter_backends = [filters.SearchFilter]
    search_fields = ["url", "seen__may_contain"]
